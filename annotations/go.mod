module github.com/reqlock/reqlock/annotations

go 1.21

require google.golang.org/protobuf v1.36.5

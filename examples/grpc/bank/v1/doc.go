// Package bankv1 is a gRPC service that declares its locks in bank.proto.
//
// To generate it anew after a change of bank.proto, install protoc, protoc-gen-go and
// protoc-gen-go-grpc, and run go generate. protoc finds the annotations in the module that
// go.mod requires.
package bankv1

//go:generate sh -c "protoc -I ../.. -I $(go list -m -f '{{.Dir}}' github.com/reqlock/reqlock/annotations) --go_out=../.. --go_opt=paths=source_relative --go-grpc_out=../.. --go-grpc_opt=paths=source_relative bank/v1/bank.proto"

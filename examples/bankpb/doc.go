// Package bankpb is the gRPC service of the tests and of the examples.
//
// To generate it anew after a change of bank.proto, install protoc,
// protoc-gen-go and protoc-gen-go-grpc, and run go generate.
package bankpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative bank.proto

// Package reqlockv1 is the Go code of reqlock/v1/annotations.proto: the options by which a
// .proto file declares the locks and the idempotency of its methods. Generated code of such a
// file imports it. protolock.New reads the options.
//
// The package is in a module of its own, which requires only google.golang.org/protobuf, since
// all clients of an annotated service import it.
//
// After a change of annotations.proto, install protoc, and protoc-gen-go of the version that
// go.mod requires, and run go generate. A test compares the code with what protoc makes.
package reqlockv1

//go:generate protoc -I .. --go_out=.. --go_opt=module=github.com/reqlock/reqlock/annotations reqlock/v1/annotations.proto

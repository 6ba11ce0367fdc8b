// Package annotatedtest makes descriptors of annotated services for tests, without protoc. The
// rules are written as in a .proto file.
package annotatedtest

// Package oteltest shows that the interceptors of grpclock go together with the
// stats handler of otelgrpc and the recovery of go-grpc-middleware. It is a
// module of its own so that reqlock needs neither.
//
// There is nothing in this package but its tests.
package oteltest

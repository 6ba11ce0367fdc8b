package grpclock

import (
	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// ServerOptions returns the options of a server that runs its unary calls and its streams
// under a lock: a UnaryServerInterceptor and a StreamServerInterceptor with the same
// arguments. Use it instead of the two, so that no kind of call runs without a lock:
//
//	grpc.NewServer(grpclock.ServerOptions(locks, key)...)
//
// The interceptors run behind the interceptors of the options before them. Put the
// interceptors that can refuse a call there:
//
//	options := []grpc.ServerOption{grpc.ChainUnaryInterceptor(auth), grpc.ChainStreamInterceptor(authStream)}
//	grpc.NewServer(append(options, grpclock.ServerOptions(locks, key)...)...)
//
// ServerOptions panics where UnaryServerInterceptor does.
func ServerOptions(l *core.Locker, key Key, opts ...core.Option) []grpc.ServerOption {
	c := lockOf("ServerOptions", l, key, opts)
	c.locksUnary()
	c.locksStreams()
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(c.unary), grpc.ChainStreamInterceptor(c.stream)}
}

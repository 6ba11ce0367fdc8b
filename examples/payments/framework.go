package main

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// A framework is one on which the bank's service stands.
type framework struct {
	Name  string
	Words words
	// Serve starts the service of a bank on an address.
	Serve func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error)
	// Dial returns a client of the service at an address.
	Dial func(addr string) (client, error)
}

// Words are how a protocol says that another holds the lock.
type words struct {
	Busy  string // the status
	Retry string // what tells when to try again
}

var (
	httpWords = words{Busy: "409", Retry: "Retry-After"}
	grpcWords = words{Busy: "ABORTED", Retry: "RetryInfo"}
)

// allFrameworks returns the frameworks in the order in which they are shown.
func allFrameworks() []framework {
	return []framework{
		onHTTP("net/http", func(b *bank, l *core.Locker) http.Handler { return newNetHTTPService(b, l).handler() }),
		onHTTP("Gin", func(b *bank, l *core.Locker) http.Handler { return newGinService(b, l).handler() }),
		onHTTP("Echo", func(b *bank, l *core.Locker) http.Handler { return newEchoService(b, l).handler() }),
		onGRPC("gRPC", func(b *bank, l *core.Locker) *grpc.Server { return newGRPCService(b, l).server(slowCall) }),
	}
}

// onHTTP returns a framework whose services are HTTP handlers.
func onHTTP(name string, service func(*bank, *core.Locker) http.Handler) framework {
	return framework{
		Name:  name,
		Words: httpWords,
		Serve: func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error) {
			return serveHTTP(ctx, addr, slow(service(bank, locks)))
		},
		Dial: func(addr string) (client, error) { return newHTTPClient("http://" + addr), nil },
	}
}

// onGRPC returns a framework whose services are gRPC servers.
func onGRPC(name string, service func(*bank, *core.Locker) *grpc.Server) framework {
	return framework{
		Name:  name,
		Words: grpcWords,
		Serve: func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error) {
			return serveGRPC(ctx, addr, service(bank, locks))
		},
		Dial: func(addr string) (client, error) { return newGRPCClient(addr) },
	}
}

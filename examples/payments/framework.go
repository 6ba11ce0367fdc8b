package main

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// A framework runs the service of a bank.
type framework struct {
	Name     string
	Protocol protocol
	// Serve starts the service of a bank on an address.
	Serve func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error)
	// Dial returns a client of the service at an address.
	Dial func(addr string) (client, error)
}

// A protocol has its texts for the answers of scenarios.
type protocol struct {
	Busy  string // the status if another request holds the lock
	Retry string // what contains the time to retry
	Error string // the status of a failed handler
}

var (
	httpProtocol = protocol{Busy: "409", Retry: "Retry-After", Error: "500"}
	grpcProtocol = protocol{Busy: "ABORTED", Retry: "RetryInfo", Error: "INTERNAL"}
)

// allFrameworks returns the frameworks in the order of the table.
func allFrameworks() []framework {
	return []framework{
		onHTTP("net/http", func(b *bank, l *core.Locker) http.Handler { return newNetHTTPService(b, l).handler() }),
		onHTTP("Gin", func(b *bank, l *core.Locker) http.Handler { return newGinService(b, l).handler() }),
		onHTTP("Echo", func(b *bank, l *core.Locker) http.Handler { return newEchoService(b, l).handler() }),
		onGRPC("gRPC", func(b *bank, l *core.Locker) *grpc.Server { return newGRPCService(b, l).server(slowCall) }),
	}
}

// onHTTP returns a framework with HTTP handlers as services.
func onHTTP(name string, service func(*bank, *core.Locker) http.Handler) framework {
	return framework{
		Name:     name,
		Protocol: httpProtocol,
		Serve: func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error) {
			return serveHTTP(ctx, addr, slow(service(bank, locks)))
		},
		Dial: func(addr string) (client, error) { return newHTTPClient("http://" + addr), nil },
	}
}

// onGRPC returns a framework with gRPC servers as services.
func onGRPC(name string, service func(*bank, *core.Locker) *grpc.Server) framework {
	return framework{
		Name:     name,
		Protocol: grpcProtocol,
		Serve: func(ctx context.Context, addr string, bank *bank, locks *core.Locker) (*server, error) {
			return serveGRPC(ctx, addr, service(bank, locks))
		},
		Dial: func(addr string) (client, error) { return newGRPCClient(addr) },
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
)

// A server is a running server.
type server struct {
	// Addr is the address of the server, as host:port.
	Addr string
	// Stop stops accepting requests, and waits for the requests in flight until ctx
	// ends. Then it closes their connections.
	Stop func(ctx context.Context) error
}

// listen listens on an address such as "127.0.0.1:0"; port 0 means any free port.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return listener, nil
}

// serveHTTP starts an HTTP server.
func serveHTTP(ctx context.Context, addr string, handler http.Handler) (*server, error) {
	listener, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }()
	stop := func(ctx context.Context) error {
		err := web.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, web.Close())
		}
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
	return &server{Addr: listener.Addr().String(), Stop: stop}, nil
}

// serveGRPC starts a gRPC server.
func serveGRPC(ctx context.Context, addr string, calls *grpc.Server) (*server, error) {
	listener, err := listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- calls.Serve(listener) }()
	stop := func(ctx context.Context) error {
		inTime := context.AfterFunc(ctx, calls.Stop)
		calls.GracefulStop()
		err := <-done
		if !inTime() {
			err = errors.Join(err, context.Cause(ctx))
		}
		return err
	}
	return &server{Addr: listener.Addr().String(), Stop: stop}, nil
}

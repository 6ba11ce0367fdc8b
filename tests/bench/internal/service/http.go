package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Listen listens on a free loopback port.
func Listen(ctx context.Context) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
}

// An HTTP is a service on the server of net/http.
type HTTP struct {
	// Addr is its host:port.
	Addr string

	server *http.Server
	served chan error
}

// Serve serves a handler on a free loopback port.
func Serve(ctx context.Context, handler http.Handler) (*HTTP, error) {
	listener, err := Listen(ctx)
	if err != nil {
		return nil, err
	}
	s := &HTTP{
		Addr:   listener.Addr().String(),
		server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

// Close ends the service and its connections.
func (s *HTTP) Close() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

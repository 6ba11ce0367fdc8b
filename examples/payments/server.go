package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A server is an HTTP server that accepts requests.
type server struct {
	// URL is where to reach it, without a slash at the end.
	URL string

	http *http.Server
	done chan error // what Serve returned
}

// serve starts a server on an address such as "127.0.0.1:0", where port 0 is
// any free one.
func serve(ctx context.Context, addr string, handler http.Handler) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	s := &server{
		URL:  "http://" + listener.Addr().String(),
		http: &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second},
		done: make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(listener) }()
	return s, nil
}

// stop accepts no more requests, and waits for those under way until ctx ends.
// Then it breaks their connections.
func (s *server) stop(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

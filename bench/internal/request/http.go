package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// clients is how many clients call a service at a time.
const clients = 64

// An httpSite is a service on HTTP, and its client.
type httpSite struct {
	handler http.Handler
	server  *http.Server
	client  *http.Client
	url     string
	served  chan error
}

func openHTTP(ctx context.Context, handler http.Handler) (site, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &httpSite{
		handler: handler,
		server:  &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
		url:     "http://" + listener.Addr().String() + "/hello/",
		served:  make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

func (s *httpSite) call(ctx context.Context, id string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+id, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	return mustBeOK(answer.StatusCode)
}

func (s *httpSite) direct(ctx context.Context, id string) (func() error, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+id, http.NoBody)
	if err != nil {
		return nil, err
	}
	w := &sink{header: make(http.Header)}
	return func() error {
		w.status = http.StatusOK
		s.handler.ServeHTTP(w, r)
		return mustBeOK(w.status)
	}, nil
}

func (s *httpSite) close() error {
	s.client.CloseIdleConnections()
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func mustBeOK(status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("the answer has status %d", status)
	}
	return nil
}

// A sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

// Header returns the same header for each answer.
func (s *sink) Header() http.Header { return s.header }

// Write drops what it is given.
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader keeps the status.
func (s *sink) WriteHeader(status int) { s.status = status }

package request

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// clients is how many clients call a service at a time.
const clients = 64

// An httpSite is a service on HTTP, and its client.
type httpSite struct {
	handler http.Handler
	service *service.HTTP
	client  *http.Client
	url     string
}

func openHTTP(ctx context.Context, handler http.Handler) (site, error) {
	served, err := service.Serve(ctx, handler)
	if err != nil {
		return nil, err
	}
	return &httpSite{
		handler: handler,
		service: served,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
		url:     "http://" + served.Addr + "/hello/",
	}, nil
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
	return s.service.Close()
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

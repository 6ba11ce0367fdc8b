package request

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/reqlock/reqlock/tests/bench/internal/service"
)

// clients is the number of concurrent clients of a service.
const clients = 64

// An httpSite is a service on HTTP, and its client.
type httpSite struct {
	handler http.Handler
	service *service.HTTP
	client  *http.Client
	url     string
}

func openHTTP(ctx context.Context, handler http.Handler) (testService, error) {
	served, err := service.Serve(ctx, handler)
	if err != nil {
		return nil, err
	}
	return &httpSite{
		handler: handler,
		service: served,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}},
		url:     "http://" + served.Addr + "/greeting/",
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
	w := &discardWriter{header: make(http.Header)}
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

// A discardWriter is a ResponseWriter without any cost.
type discardWriter struct {
	header http.Header
	status int
}

// Header returns the same header for each response.
func (s *discardWriter) Header() http.Header { return s.header }

// Write discards its argument.
func (s *discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader stores the status.
func (s *discardWriter) WriteHeader(status int) { s.status = status }

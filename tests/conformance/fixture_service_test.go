package conformance

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
)

// A service is a served endpoint, and its client.
type service struct {
	*environment
	*liveServer
	runs atomic.Int64 // of the handler
}

// serveEndpoint serves an endpoint until the scenario is over. Without a handler it answers 201
// with a text that is unique for each run.
func (e *environment) serveEndpoint(point endpoint) *service {
	e.Helper()
	s := &service{environment: e}
	handler := point.handler
	point.handler = func(t invocation) {
		n := s.runs.Add(1)
		if handler != nil {
			handler(t)
			return
		}
		t.Header().Set("Content-Type", "application/json")
		t.Header().Set("Location", fmt.Sprintf("/payments/%d", n))
		t.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(t, `{"payment":%d}`, n)
	}
	s.liveServer = startHTTP(e.T, e.f.endpoint(e.locks, point))
	return s
}

// An httpRequest is a request of a client.
type httpRequest struct {
	method  string // "": POST
	path    string // "": paymentsPath
	host    string // "": the server's address
	user    string // "": ada
	keys    []string
	header  http.Header
	body    string
	chunked bool // without a Content-Length
}

// payment returns a request with an idempotency key that no answer may contain.
func payment(name string) httpRequest { return keyed(keyPrefix + name) }

// keyPrefix is the prefix of the idempotency keys of payments.
const keyPrefix = "secret-"

// keyed returns a request with this text as its idempotency key.
func keyed(key string) httpRequest { return httpRequest{keys: []string{key}, body: `{"amount":7}`} }

// An httpAnswer is the answer of an endpoint, as its client reads it.
type httpAnswer struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
	early   []int // the informational answers before it
	err     error // the connection broke
}

// do sends a request. It may be called from any goroutine.
func (s *service) do(ctx context.Context, r httpRequest) (answer httpAnswer) {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a handler may need the patience itself
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int, _ textproto.MIMEHeader) error {
			answer.early = append(answer.early, status)
			return nil
		},
	})
	body := io.Reader(strings.NewReader(r.body))
	if r.chunked {
		body = struct{ io.Reader }{body}
	}
	request, err := http.NewRequestWithContext(ctx, or(r.method, http.MethodPost), s.URL+or(r.path, paymentsPath), body)
	if err != nil {
		s.Errorf("NewRequest: %v", err)
		return httpAnswer{err: err}
	}
	request.Host = or(r.host, request.Host)
	maps.Copy(request.Header, r.header)
	request.SetBasicAuth(or(r.user, "ada"), "password")
	request.Header["Idempotency-Key"] = r.keys
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return httpAnswer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	answer.status, answer.header, answer.body = response.StatusCode, response.Header, string(text)
	answer.trailer, answer.err = response.Trailer, err
	if strings.Contains(fmt.Sprint(answer), keyPrefix) {
		s.Errorf("the answer contains the key: %+v", answer)
	}
	return answer
}

// runsWith sends a request. It fails the test unless the handler runs and the answer has the
// status.
func (s *service) runsWith(status int, r httpRequest) httpAnswer {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 1 || answer.err != nil || answer.status != status ||
		answer.header["Idempotent-Replayed"] != nil {
		s.Errorf("the handler has run %d times, and the answer is %+v, not %d", ran, answer, status)
	}
	return answer
}

// replays sends a request. It fails the test unless the first answer is replayed.
func (s *service) replays(first httpAnswer, r httpRequest) httpAnswer {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 0 {
		s.Errorf("the handler ran %d times for a copy", ran)
	}
	s.wantReplay(first, answer)
	return answer
}

// wantReplay fails the test unless an answer is a replay of the first one.
func (s *service) wantReplay(first, answer httpAnswer) {
	s.Helper()
	marked := slices.Equal(answer.header["Idempotent-Replayed"], []string{"true"}) &&
		slices.Equal(answer.header["Cache-Control"], []string{"no-store"})
	if !marked || answer.status != first.status || answer.body != first.body || answer.err != nil ||
		!reflect.DeepEqual(lasting(answer.header), lasting(first.header)) {
		s.Errorf("the copy got\n%+v, not\n%+v", answer, first)
	}
}

// lasting returns a header without the fields that belong to one exchange.
func lasting(header http.Header) http.Header {
	header = header.Clone()
	for _, name := range []string{"Date", "Cache-Control", "Idempotent-Replayed", "Content-Length"} {
		header.Del(name)
	}
	return header
}

// refuses sends a request. It fails the test unless the request is refused by the row of
// core.RefusalOf for the error, and the handler does not run.
func (s *service) refuses(err error, r httpRequest) httpAnswer {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 0 {
		s.Errorf("the handler has run %d times for a request that is refused", ran)
	}
	s.wantRefused(err, answer)
	return answer
}

// wantRefused fails the test unless an answer is the refusal for the error.
func (s *service) wantRefused(err error, answer httpAnswer) {
	s.Helper()
	want, _ := core.RefusalOf(err)
	problem, ok := problemIn([]byte(answer.body))
	if !ok || answer.status != want.HTTP || problem.Code != want.Code || answer.header["Idempotent-Replayed"] != nil ||
		(answer.header["Retry-After"] != nil) != (want.RetryAfter > 0) {
		s.Errorf("the answer is %+v, not %d %s", answer, want.HTTP, want.Code)
	}
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

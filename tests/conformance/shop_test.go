package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
)

// A shop is an endpoint that is served, and its client.
type shop struct {
	*env
	*httptest.Server
	runs atomic.Int64 // of the handler
}

// shop serves an endpoint until the scenario is over. Without a handler it
// answers 201, with a text that no two runs share.
func (e *env) shop(point endpoint) *shop {
	e.Helper()
	s := &shop{env: e}
	handler := point.handler
	point.handler = func(t turn) {
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
	s.Server = startHTTP(e.T, e.f.endpoint(e.locks, point))
	return s
}

// A sent is a request of a client.
type sent struct {
	method  string // "": POST
	path    string // "": paymentsPath
	host    string // "": that of the server
	user    string // "": ada
	keys    []string
	header  http.Header
	body    string
	chunked bool // without a Content-Length
}

// payment is a request with an idempotency key, of which no answer may tell.
func payment(name string) sent { return keyed(secret + name) }

// secret begins the idempotency keys of payments.
const secret = "secret-"

// keyed is a request with an idempotency key as it is sent.
func keyed(key string) sent { return sent{keys: []string{key}, body: `{"amount":7}`} }

// A got is the answer of an endpoint, as its client reads it.
type got struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
	early   []int // the informational answers before it
	err     error // the connection broke
}

// do sends a request. It may be called from any goroutine.
func (s *shop) do(ctx context.Context, r sent) (answer got) {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a handler may need the patience for itself
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
		return got{err: err}
	}
	request.Host = or(r.host, request.Host)
	maps.Copy(request.Header, r.header)
	request.SetBasicAuth(or(r.user, "ada"), "password")
	request.Header["Idempotency-Key"] = r.keys
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	answer.status, answer.header, answer.body = response.StatusCode, response.Header, string(text)
	answer.trailer, answer.err = response.Trailer, err
	if strings.Contains(fmt.Sprint(answer), secret) {
		s.Errorf("the answer tells the key: %+v", answer)
	}
	return answer
}

// runsWith sends a request that must run, and be answered with the status.
func (s *shop) runsWith(status int, r sent) got {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 1 || answer.err != nil || answer.status != status ||
		answer.header["Idempotent-Replayed"] != nil {
		s.Errorf("the handler has run %d times, and the answer is %+v, not %d", ran, answer, status)
	}
	return answer
}

// replays sends a request that must get the first answer again.
func (s *shop) replays(first got, r sent) got {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 0 {
		s.Errorf("the handler has run %d times for a copy", ran)
	}
	s.wantReplay(first, answer)
	return answer
}

// wantReplay sees that an answer is the first one again.
func (s *shop) wantReplay(first, answer got) {
	s.Helper()
	marked := slices.Equal(answer.header["Idempotent-Replayed"], []string{"true"}) &&
		slices.Equal(answer.header["Cache-Control"], []string{"no-store"})
	if !marked || answer.status != first.status || answer.body != first.body || answer.err != nil ||
		!reflect.DeepEqual(lasting(answer.header), lasting(first.header)) {
		s.Errorf("the copy got\n%+v, not\n%+v", answer, first)
	}
}

// lasting returns a header without what belongs to one exchange.
func lasting(header http.Header) http.Header {
	header = header.Clone()
	for _, name := range []string{"Date", "Cache-Control", "Idempotent-Replayed", "Content-Length"} {
		header.Del(name)
	}
	return header
}

// refuses sends a request that must not run, and be refused by the row of
// core.OutcomeOf that the error has.
func (s *shop) refuses(err error, r sent) got {
	s.Helper()
	before := s.runs.Load()
	answer := s.do(s.Context(), r)
	if ran := s.runs.Load() - before; ran != 0 {
		s.Errorf("the handler has run %d times for a request that is refused", ran)
	}
	s.wantRefused(err, answer)
	return answer
}

// wantRefused sees that an answer is a refusal for the error.
func (s *shop) wantRefused(err error, answer got) {
	s.Helper()
	want, _ := core.OutcomeOf(err)
	var problem struct{ Code string }
	_ = json.Unmarshal([]byte(answer.body), &problem)
	if answer.status != want.HTTP || problem.Code != want.Code || answer.header["Idempotent-Replayed"] != nil ||
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

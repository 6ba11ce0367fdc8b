package nethttplock_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

// TestIdempotentReverseProxy sends a request twice through a reverse proxy to a
// payment service that charges and then closes the connection before its answer is
// complete.
func TestIdempotentReverseProxy(t *testing.T) {
	t.Parallel()
	const (
		created = "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"paid\":"
		failed  = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\nfai"
		chunked = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"paid\":\r\n"
	)
	for name, test := range map[string]struct {
		upstream string // what the service sends before it closes the connection
		decision core.Decision
		recovers bool // a recovery between Idempotent and the proxy
		free     bool // with FreeOnFailure
		charges  int32
		second   string // the code of the second answer; "" means the service's own answer
	}{
		"a whole 201":                  {upstream: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", charges: 1},
		"no status":                    {upstream: "", charges: 1, second: "outcome_unknown"},
		"a part of a 201":              {upstream: created, charges: 1, second: "outcome_unknown"},
		"a part of a 201, no length":   {upstream: chunked, charges: 1, second: "outcome_unknown"},
		"a part of a 500":              {upstream: failed, charges: 1, second: "outcome_unknown"},
		"a part of a 201, DropAnswer":  {upstream: created, decision: core.DropAnswer, charges: 2},
		"chunks of a 201, DropAnswer":  {upstream: chunked, decision: core.DropAnswer, charges: 2},
		"a part of a 201, Uncertain":   {upstream: created, decision: core.Uncertain, charges: 1, second: "outcome_unknown"},
		"a part of a 201, StoreAnswer": {upstream: created, decision: core.StoreAnswer, charges: 1, second: "outcome_unknown"},
		"a part of a 500, StoreAnswer": {upstream: failed, decision: core.StoreAnswer, charges: 1, second: "outcome_unknown"},
		"a part of a 500, Uncertain":   {upstream: failed, decision: core.Uncertain, charges: 1, second: "outcome_unknown"},
		"a part of a 201, recovered":   {upstream: created, recovers: true, charges: 1, second: "completed_unreplayable"},
		"a part of a 500, recovered":   {upstream: failed, recovers: true, charges: 1, second: "outcome_unknown"},
		"no status, FreeOnFailure":     {upstream: "", free: true, charges: 2},
		"a part of a 201, free":        {upstream: created, free: true, charges: 1, second: "outcome_unknown"},
		"a part of a 500, free":        {upstream: failed, free: true, charges: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var charges atomic.Int32
			service := quietServer(t, func(w http.ResponseWriter, _ *http.Request) {
				charges.Add(1)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, test.upstream)
				_ = conn.Close()
			})
			proxy := proxyTo(t, service.URL)
			var opts []nethttplock.Option
			if test.free {
				opts = append(opts, nethttplock.FreeOnFailure())
			}
			idempotent := nethttplock.Idempotent(locktest.New(t).Locker, byKey, opts...)
			edge := quietServer(t, idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.recovers {
					defer func() { _ = recover() }()
				}
				attempt, _ := nethttplock.AttemptFromContext(r.Context())
				attempt.Decide(test.decision)
				proxy.ServeHTTP(w, r)
			})).ServeHTTP)
			postForCode(t, edge, "key")
			code := postForCode(t, edge, "key")
			if charged := charges.Load(); charged != test.charges || code != test.second {
				t.Errorf("charged %d times, want %d; the second answer has the code %q, want %q",
					charged, test.charges, code, test.second)
			}
		})
	}
}

// proxyTo returns a reverse proxy; the end of the test closes its connections.
func proxyTo(t *testing.T, target string) *httputil.ReverseProxy {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
}

// quietServer serves a handler, and does not log panics.
func quietServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// postForCode sends a request, and returns the code of a refusal. It returns "" for
// another answer or a broken connection.
func postForCode(t *testing.T, s *httptest.Server, key string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("7"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	answer, err := s.Client().Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	_, code, _ := strings.Cut(string(body), `"code":`)
	if answer.Header.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	var text string
	_, _ = fmt.Sscanf(code, "%q", &text)
	return text
}

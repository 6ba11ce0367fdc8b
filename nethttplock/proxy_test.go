package nethttplock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
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
		decision core.Ending
		recovers bool // a recovery between Idempotent and the proxy
		free     bool // with WithFreeOnFailure
		charges  int32
		second   string // the code of the second answer; "" means the service's own answer
	}{
		"a whole 201":                  {upstream: "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", charges: 1},
		"no status":                    {upstream: "", charges: 1, second: "outcome_unknown"},
		"a part of a 201":              {upstream: created, charges: 1, second: "outcome_unknown"},
		"a part of a 201, no length":   {upstream: chunked, charges: 1, second: "outcome_unknown"},
		"a part of a 500":              {upstream: failed, charges: 1, second: "outcome_unknown"},
		"a part of a 201, EndAbort":    {upstream: created, decision: core.EndAbort, charges: 2},
		"chunks of a 201, EndAbort":    {upstream: chunked, decision: core.EndAbort, charges: 2},
		"a part of a 201, EndUnknown":  {upstream: created, decision: core.EndUnknown, charges: 1, second: "outcome_unknown"},
		"a part of a 201, EndCommit":   {upstream: created, decision: core.EndCommit, charges: 1, second: "outcome_unknown"},
		"a part of a 500, EndCommit":   {upstream: failed, decision: core.EndCommit, charges: 1, second: "outcome_unknown"},
		"a part of a 500, EndUnknown":  {upstream: failed, decision: core.EndUnknown, charges: 1, second: "outcome_unknown"},
		"a part of a 201, recovered":   {upstream: created, recovers: true, charges: 1, second: "completed_unreplayable"},
		"a part of a 500, recovered":   {upstream: failed, recovers: true, charges: 1, second: "outcome_unknown"},
		"no status, WithFreeOnFailure": {upstream: "", free: true, charges: 2},
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
			var opts []core.Option
			if test.free {
				opts = append(opts, core.WithFreeOnFailure())
			}
			idempotent := nethttplock.Idempotent(locktest.New(t).Locker, byKey, opts...)
			edge := quietServer(t, idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.recovers {
					defer func() { _ = recover() }()
				}
				attempt, _ := core.AttemptFromContext(r.Context())
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

// If the service could not be reached, a copy runs. If anything may have been sent, the
// outcome is unknown, whatever the last error is.
func TestReverseProxyThatReachesNoService(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		service func(t *testing.T) (url string, used func()) // used is called after the service's first answer
		handler func(*httputil.ReverseProxy)
		decides core.Ending
		second  string // the code of the second answer; "" if the request was passed on again
	}{
		"a closed port":                           {service: closedPort},
		"a closed port, an ErrorHandler":          {service: closedPort, handler: answering(http.StatusServiceUnavailable)},
		"a closed port, another answer":           {service: closedPort, handler: answering(http.StatusInternalServerError), second: "outcome_unknown"},
		"a closed port, an answer that is stored": {service: closedPort, handler: answering(http.StatusCreated), second: replayed},
		"a closed port, no answer":                {service: closedPort, handler: onlyLogs, second: "outcome_unknown"},
		"a closed port, a decision":               {service: closedPort, decides: core.EndUnknown, second: "outcome_unknown"},
		"a closed port, without a trace":          {service: closedPort, handler: hidesTrace, second: "outcome_unknown"},
		"no name":                                 {service: func(*testing.T) (string, func()) { return "http://service.invalid", nil }},
		"TLS with a plain service":                {service: func(t *testing.T) (string, func()) { return strings.Replace(servesOnce(t), "http:", "https:", 1), nil }},
		"an answer that ends early":               {service: func(t *testing.T) (string, func()) { return servesOnce(t), nil }, second: "outcome_unknown"},
		"an answer that ends early, and a 503":    {service: func(t *testing.T) (string, func()) { return servesOnce(t), nil }, handler: answering(http.StatusServiceUnavailable), second: "outcome_unknown"},
		"a reused connection, then a 409":         {service: answersNext(409), second: "outcome_unknown"},
		"a reused connection, then a 200":         {service: answersNext(200), second: replayed},
		"a reused connection, then a closed port": {service: diesOnReuse, second: "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, used := test.service(t)
			proxy := proxyTo(t, target)
			proxy.Transport.(*http.Transport).DisableKeepAlives = false
			if test.handler != nil {
				test.handler(proxy)
			}
			passed := nethttplock.ReverseProxy(proxy)
			if used != nil { // outside of an Idempotent it is the proxy
				if code := postForCode(t, quietServer(t, passed.ServeHTTP), "other"); code != "" {
					t.Fatalf("the first request: %s", code)
				}
				used()
			}
			passes := 0
			idempotent := nethttplock.Idempotent(locktest.New(t).Locker, byKey, core.WithoutFingerprint())
			edge := quietServer(t, idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				passes++
				attempt, _ := core.AttemptFromContext(r.Context())
				attempt.Decide(test.decides)
				r.Body, r.ContentLength = http.NoBody, 0 // only such a request is sent again by the Transport
				passed.ServeHTTP(w, r)
			})).ServeHTTP)
			postForCode(t, edge, "key")
			code := postForCode(t, edge, "key")
			if code == "" && passes == 1 {
				code = replayed
			}
			if code != test.second {
				t.Errorf("passed on %d times, and the second answer has the code %q, want %q", passes, code, test.second)
			}
		})
	}
}

// replayed stands for a replay, in the place of a code.
const replayed = "a replay"

// Several tries of one request. What was sent in any of them counts, and so does what the
// request ends with.
func TestReverseProxyWithOtherTries(t *testing.T) {
	t.Parallel()
	type try = func(w http.ResponseWriter, r *http.Request, closed, broken, works http.Handler)
	besides := func(status int) try { // something else answers while a proxy tries
		return func(w http.ResponseWriter, r *http.Request, _, _, _ http.Handler) {
			address, _ := closedPort(t)
			proxy := proxyTo(t, address)
			transport := proxy.Transport
			proxy.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				w.WriteHeader(status)
				return transport.RoundTrip(r)
			})
			nethttplock.ReverseProxy(proxy).ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	for name, test := range map[string]struct {
		tries  try
		second string
	}{
		"then one that works": {func(w http.ResponseWriter, r *http.Request, closed, _, works http.Handler) {
			closed.ServeHTTP(httptest.NewRecorder(), r)
			works.ServeHTTP(w, r)
		}, replayed},
		"then one that breaks": {func(w http.ResponseWriter, r *http.Request, closed, broken, _ http.Handler) {
			closed.ServeHTTP(httptest.NewRecorder(), r)
			broken.ServeHTTP(w, r)
		}, "outcome_unknown"},
		"after one that broke": {func(w http.ResponseWriter, r *http.Request, closed, broken, _ http.Handler) {
			broken.ServeHTTP(httptest.NewRecorder(), r)
			closed.ServeHTTP(w, r)
		}, "outcome_unknown"},
		"after another one that sent nothing": {func(w http.ResponseWriter, r *http.Request, closed, _, _ http.Handler) {
			closed.ServeHTTP(httptest.NewRecorder(), r)
			closed.ServeHTTP(w, r)
		}, ""},
		"that sent nothing, buffered": {func(w http.ResponseWriter, r *http.Request, _, _, _ http.Handler) {
			address, _ := closedPort(t)
			proxy := proxyTo(t, address)
			proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
				http.Error(w, "no service", http.StatusServiceUnavailable)
			}
			buffer := httptest.NewRecorder()
			nethttplock.ReverseProxy(proxy).ServeHTTP(buffer, r)
			w.WriteHeader(buffer.Code)
			_, _ = w.Write(buffer.Body.Bytes())
		}, ""},
		"that sent nothing, and serves the request by other means": {func(w http.ResponseWriter, r *http.Request, _, _, _ http.Handler) {
			address, _ := closedPort(t)
			proxy := proxyTo(t, address)
			proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = io.WriteString(w, "queued") }
			nethttplock.ReverseProxy(proxy).ServeHTTP(w, r)
		}, replayed},
		"a failover in the ErrorHandler": {func(w http.ResponseWriter, r *http.Request, _, broken, _ http.Handler) {
			address, _ := closedPort(t)
			proxy := proxyTo(t, address)
			proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, _ error) { broken.ServeHTTP(w, r) }
			nethttplock.ReverseProxy(proxy).ServeHTTP(w, r)
		}, "outcome_unknown"},
		"then a 502 of another service": {func(w http.ResponseWriter, r *http.Request, closed, _, _ http.Handler) {
			closed.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
		}, "outcome_unknown"},
		"an answer while one sends nothing": {besides(http.StatusCreated), replayed},
		"a 502 while one sends nothing":     {besides(http.StatusBadGateway), "outcome_unknown"},
		"in a second Idempotent": {func(w http.ResponseWriter, r *http.Request, closed, _, _ http.Handler) {
			nethttplock.Idempotent(locktest.New(t).Locker, byKey)(closed).ServeHTTP(w, r)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := closedPort(t)
			closed, broken := nethttplock.ReverseProxy(proxyTo(t, address)), nethttplock.ReverseProxy(proxyTo(t, servesOnce(t)))
			works := quietServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			passes := 0
			edge := quietServer(t, nethttplock.Idempotent(locktest.New(t).Locker, byKey)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				passes++
				r.Body = io.NopCloser(r.Body) // from Go 1.27 on, a try that cannot dial closes it
				test.tries(w, r, closed, broken, nethttplock.ReverseProxy(proxyTo(t, works.URL)))
			})).ServeHTTP)
			postForCode(t, edge, "key")
			code := postForCode(t, edge, "key")
			if code == "" && passes == 1 {
				code = replayed
			}
			if code != test.second {
				t.Errorf("passed on %d times, and the second answer has the code %q, want %q", passes, code, test.second)
			}
		})
	}
}

// Outside of an Idempotent, an ErrorHandler gets the writer of the server.
func TestReverseProxyAloneKeepsTheWriter(t *testing.T) {
	t.Parallel()
	address, _ := closedPort(t)
	proxy := proxyTo(t, address)
	var got http.ResponseWriter
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { got = w }
	w := httptest.NewRecorder()
	nethttplock.ReverseProxy(proxy).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody))
	if got != w {
		t.Errorf("a %T", got)
	}
}

// answering gives the proxy an ErrorHandler of the application.
func answering(status int) func(*httputil.ReverseProxy) {
	return func(proxy *httputil.ReverseProxy) {
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(status) }
	}
}

// onlyLogs gives the proxy an ErrorHandler that gives no answer.
func onlyLogs(proxy *httputil.ReverseProxy) {
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {}
}

// hidesTrace gives the proxy a transport that does not support httptrace.
func hidesTrace(proxy *httputil.ReverseProxy) {
	transport := proxy.Transport
	proxy.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		return transport.RoundTrip(r.WithContext(context.Background()))
	})
}

// A roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closedPort returns the address of a port on which nothing listens. No listener of another test gets
// it, because the system chooses none below 1024.
func closedPort(*testing.T) (string, func()) { return "http://127.0.0.1:1", nil }

// servesOnce returns the address of a service that reads one request and closes the connection.
func servesOnce(t *testing.T) string {
	t.Helper()
	listener := listenTCP(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_ = conn.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

// diesOnReuse returns the address of a service that answers one request, reads the second one
// on the same connection, and then closes its port before the connection.
func diesOnReuse(t *testing.T) (string, func()) {
	t.Helper()
	listener := listenTCP(t)
	answered := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		reader := bufio.NewReader(conn)
		_, _ = http.ReadRequest(reader)
		_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
		close(answered)
		_, _ = http.ReadRequest(reader)
		_ = listener.Close()
		_ = conn.Close()
	}()
	return "http://" + listener.Addr().String(), func() { <-answered }
}

// answersNext returns the address of a service that answers one request, reads the second one on
// the same connection and closes the connection, and answers on others with the status.
func answersNext(status int) func(t *testing.T) (string, func()) {
	return func(t *testing.T) (string, func()) {
		t.Helper()
		listener := listenTCP(t)
		answered := make(chan struct{})
		go func() {
			used, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(used)
			_, _ = http.ReadRequest(reader)
			_, _ = io.WriteString(used, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
			close(answered)
			_, _ = http.ReadRequest(reader)
			_ = used.Close()
			for {
				next, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(next))
				_, _ = fmt.Fprintf(next, "HTTP/1.1 %d Next\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status)
				_ = next.Close()
			}
		}()
		return "http://" + listener.Addr().String(), func() { <-answered }
	}
}

// listenTCP listens on a free port until the end of the test.
func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
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

package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// bodyScenarios test the body that is read for the fingerprint.
func bodyScenarios() []testCase {
	return []testCase{
		{"the handler reads the whole body", everywhere, handlerReadsBody},
		{"the longest body, and one byte more", everywhere, func(e *environment) { longestBody(e, false) }},
		{"the longest body, and one byte more, without a Content-Length", everywhere, func(e *environment) { longestBody(e, true) }},
		{"an empty body without a Content-Length is no mistake", everywhere, emptyChunks},
		{"an incomplete body begins no attempt", everywhere, bodyBreaksOff},
	}
}

func handlerReadsBody(e *environment) {
	long := strings.Repeat("body ", 20000)
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		body, err := io.ReadAll(t.r.Body)
		if string(body) != long || err != nil {
			e.Errorf("the handler reads %d bytes, %v", len(body), err)
		}
		if n := t.r.ContentLength; n != int64(len(long)) && n != -1 {
			e.Errorf("the length is %d", n)
		}
		if err := t.r.Body.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
		t.WriteHeader(http.StatusCreated)
	}})
	for _, chunked := range []bool{false, true} {
		request := httpRequest{keys: []string{fmt.Sprint(chunked)}, body: long, chunked: chunked}
		s.replays(s.runsWith(http.StatusCreated, request), request)
	}
}

// After the refusal the key is free for a shorter request.
func longestBody(e *environment, chunked bool) {
	const limit = 3000
	s := e.serveEndpoint(endpoint{own: ownOptions{maxBody: limit}})
	request := httpRequest{keys: []string{"longest"}, body: strings.Repeat("b", limit+1), chunked: chunked}
	s.refuses(core.ErrBodyTooLarge, request)
	request.body = request.body[1:]
	s.replays(s.runsWith(http.StatusCreated, request), request)
}

func bodyBreaksOff(e *environment) {
	s := e.serveEndpoint(endpoint{})
	for _, start := range brokenBodies {
		s.breaksOff(http.StatusBadRequest, "broken", start)
	}
	if names := e.names(e.Context(), ""); len(names) != 0 {
		e.Errorf("something has begun: %q", names)
	}
	s.runsWith(http.StatusCreated, payment("broken"))
}

// brokenBodies are the ends of requests whose client closes the connection too early.
var brokenBodies = map[string]string{
	"length": "Content-Length: 9\r\n\r\nbody",
	"chunks": "Transfer-Encoding: chunked\r\n\r\n9\r\nbody",
}

// breaksOff sends a request with a broken body. It fails the test unless the answer has the
// status.
func (s *service) breaksOff(status int, name, start string) {
	s.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(s.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nAuthorization: Basic YWRhOnBhc3N3b3Jk\r\n"+
		"Idempotency-Key: %s\r\n%s", paymentsPath, keyPrefix+name, start)
	if err != nil {
		s.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != status {
		s.Errorf("a body that breaks off: %d, not %d", answer.StatusCode, status)
	}
}

// consumed are the ways in which a middleware outside leaves no body.
var consumed = map[string]func(r *http.Request){
	"read":     func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
	"closed":   func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); _ = r.Body.Close() },
	"replaced": func(r *http.Request) { r.Body = http.NoBody },
}

// putBack reads the body and puts it back.
func putBack(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// bodyCures are what a warning says about the body, for each framework.
var bodyCures = map[string][]string{
	"nethttplock": {"r.Body = io.NopCloser(bytes.NewReader(body))"},
	"ginlock":     {"c.Request.Body = io.NopCloser(bytes.NewReader(body))", "c.ShouldBindBodyWith"},
	"echov5lock":  {"c.Request().Body = io.NopCloser(bytes.NewReader(body))"},
	"echolock":    {"c.Request().Body = io.NopCloser(bytes.NewReader(body))"},
}

// wantConsumed fails the test unless there was one warning, about a reader whose requests have
// lost their body. It forgets the events.
func (e *environment) wantConsumed(reader string) {
	e.Helper()
	warnings, _ := e.events.of(core.Warned)
	if len(warnings) != 1 {
		e.Errorf("warnings: %v", warnings)
	}
	for _, warning := range warnings {
		text := warning.Err.Error()
		for _, part := range append(bodyCures[e.f.name],
			"reqlock: "+e.f.name+": "+reader+" refuses requests whose body a middleware outside has read: ") {
			if !strings.Contains(text, part) {
				e.Errorf("the warning is %q, without %q", text, part)
			}
		}
	}
	e.events.forget()
}

// The client had sent the field, so the refusal does not say that the request lacks it.
func bodyGoneBeforeLock(e *environment) {
	serve := func(way func(*http.Request)) *routeClient {
		return e.serve(route{
			outer: func(f frame) {
				way(f.(interface{ Request() *http.Request }).Request())
				f.Next()
			},
			locks: []lock{{keys: []key{byBody}}},
			handler: func(c call) {
				body, err := c.Body()
				c.Reply(fmt.Sprint(body == theKey, err))
			},
		})
	}
	for range consumed {
		serve(putBack).wantReply(plain, "true <nil>")
	}
	for _, way := range consumed {
		s := serve(way)
		for range 2 {
			s.wantRefusal(plain, e.rowOf(keyError()))
		}
		e.wantConsumed(`JSONField("id")`)
		s.wantRefusal(request{}, e.rowOf(refused(core.ErrNoKey, 0)))
	}
	if warnings, _ := e.events.of(core.Warned); len(warnings) != 0 {
		e.Errorf("a request without a body: %v", warnings)
	}
}

// Without its body every request would have the same fingerprint.
func bodyGone(e *environment) {
	serve := func(way func(*http.Request)) *service {
		return e.serveEndpoint(endpoint{outer: func(_ http.ResponseWriter, r *http.Request) bool {
			way(r)
			return true
		}})
	}
	s := serve(putBack)
	s.replays(s.runsWith(http.StatusCreated, payment("back")), payment("back"))
	for name, way := range consumed {
		s := serve(way)
		for i, header := range []http.Header{nil, {"Content-Encoding": {"gzip"}}} {
			request := payment(name)
			request.body, request.header = fmt.Sprint(i), header
			if answer := s.do(e.Context(), request); answer.status != http.StatusInternalServerError {
				e.Errorf("%s: %+v", name, answer)
			}
		}
		e.wantConsumed("Idempotent")
		empty := payment(name + "-empty")
		empty.body, empty.header = "", http.Header{"Content-Encoding": {"gzip"}}
		s.replays(s.runsWith(http.StatusCreated, empty), empty)
	}
}

// An empty body may have no Content-Length, as one in chunks.
func emptyChunks(e *environment) {
	s := e.serveEndpoint(endpoint{})
	empty := payment("chunks")
	empty.body, empty.chunked = "", true
	first := s.runsWith(http.StatusCreated, empty)
	s.replays(first, empty)
	s.refuses(core.ErrMismatch, payment("chunks"))
	empty.chunked = false
	s.replays(first, empty)
	if warnings, _ := e.events.of(core.Warned); len(warnings) != 0 {
		e.Errorf("warnings: %v", warnings)
	}
}

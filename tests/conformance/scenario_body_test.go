package conformance

import (
	"bufio"
	"errors"
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
		{"an incomplete body that the handler reads", everywhere, handlerReadsBrokenBody},
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

// If the handler could not read the body, its failure is not the answer to a whole copy. A
// body over the handler's own limit is whole.
func handlerReadsBrokenBody(e *environment) {
	status := http.StatusCreated // if the body breaks off
	read := endpoint{own: ownOptions{noFingerprint: true}, handler: func(t invocation) {
		switch _, err := io.ReadAll(http.MaxBytesReader(t, t.r.Body, 8)); {
		case err == nil:
			t.WriteHeader(http.StatusCreated)
		case errors.As(err, new(*http.MaxBytesError)):
			t.WriteHeader(http.StatusRequestEntityTooLarge)
		default:
			t.WriteHeader(status)
		}
	}}
	for name, start := range brokenBodies {
		whole := payment(name)
		whole.body = "body"
		s := e.serveEndpoint(read)
		status = http.StatusBadRequest
		s.breaksOff(status, name, start)
		s.refuses(core.ErrInterrupted, whole)

		status = http.StatusAccepted
		whole = payment("accepted-" + name)
		s.breaksOff(status, "accepted-"+name, start)
		s.replays(httpAnswer{status: status, header: http.Header{"Content-Length": {"0"}}}, whole)

		read.own.freeOnFailure = true
		free := e.serveEndpoint(read)
		status = http.StatusBadRequest
		free.breaksOff(status, "free-"+name, start)
		whole = payment("free-" + name)
		whole.body = "body"
		free.runsWith(http.StatusCreated, whole)
		read.own.freeOnFailure = false

		long := payment("long-" + name)
		s.replays(s.runsWith(http.StatusRequestEntityTooLarge, long), long)
	}
}

package conformance

import (
	"bufio"
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
	for _, start := range []string{"Content-Length: 9\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n9\r\nbody"} {
		var dialer net.Dialer
		conn, err := dialer.DialContext(e.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			e.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nAuthorization: Basic YWRhOnBhc3N3b3Jk\r\n"+
			"Idempotency-Key: broken\r\n%s", paymentsPath, start)
		if err != nil {
			e.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			e.Fatal(err)
		}
		_ = answer.Body.Close()
		_ = conn.Close()
		if answer.StatusCode != http.StatusBadRequest {
			e.Errorf("a body that breaks off: %d", answer.StatusCode)
		}
	}
	if names := e.names(e.Context(), ""); len(names) != 0 {
		e.Errorf("something has begun: %q", names)
	}
	s.runsWith(http.StatusCreated, payment("broken"))
}

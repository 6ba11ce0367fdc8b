package conformance

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// streamScenarios send answers that are not recorded. Their requests complete without a
// stored answer, and never run again.
func streamScenarios() []testCase {
	var cases []testCase
	for name, stream := range straightOut {
		cases = append(cases, testCase{name, stream.needs, func(e *environment) { isNotBuffered(e, stream.handler, stream.status, stream.body) }})
	}
	return append(cases, testCase{"no writer bypasses the recorder", wrapping, noBypass})
}

// straightOut are handlers whose answers are sent at once, each with what its client gets.
var straightOut = map[string]struct {
	needs   feature
	handler func(t invocation)
	status  int
	body    string
}{
	"an answer that is flushed in several parts": {streams, func(t invocation) {
		for i := range 3 {
			_, _ = fmt.Fprint(t, i)
			t.ResponseWriter.(http.Flusher).Flush()
		}
	}, 200, "012"},
	"server-sent events, by a ResponseController": {streams, func(t invocation) {
		t.Header().Set("Content-Type", "text/event-stream")
		t.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(t, "data: 1\n\n")
		_ = http.NewResponseController(t.ResponseWriter).Flush()
		_, _ = io.WriteString(t, "data: 2\n\n")
	}, 200, "data: 1\n\ndata: 2\n\n"},
	"a handler that flushes and writes nothing": {streams, func(t invocation) {
		_ = http.NewResponseController(t.ResponseWriter).Flush()
	}, 200, ""},
	"an answer that is longer than a record": {everywhere, func(t invocation) {
		_, _ = io.Copy(t, strings.NewReader(strings.Repeat("b", 2<<20)))
	}, 200, strings.Repeat("b", 2<<20)},
	"a hijacked connection": {hijacking, func(t invocation) {
		conn, _, err := http.NewResponseController(t.ResponseWriter).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\npaid")
		_ = conn.Close()
	}, 202, "paid"},
	"an upgrade to another protocol": {hijacking, func(t invocation) {
		conn, _, err := t.ResponseWriter.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\npaid")
		_ = conn.Close()
	}, 101, "paid"},
	"trailers": {everywhere, func(t invocation) {
		t.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(t, "paid")
		t.Header().Set("X-Sum", "7")
	}, 200, "paid"},
}

func isNotBuffered(e *environment, handler func(t invocation), status int, body string) {
	s := e.serveEndpoint(endpoint{handler: handler})
	first := s.runsWith(status, payment("stream"))
	if first.body != body {
		e.Errorf("the first answer is %+v", first)
	}
	if first.header.Get("Content-Length") == "" && first.trailer != nil && first.trailer.Get("X-Sum") != "7" {
		e.Errorf("the trailers are %v", first.trailer)
	}
	e.events.await(e.T, core.Committed, 1) // the client may have the answer earlier
	s.refuses(core.ErrUnreplayable, payment("stream"))
}

// The answer is recorded, whichever wrapped writer the handler uses.
func noBypass(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		w := innermost(t.ResponseWriter)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("one "))
		if to, ok := w.(io.ReaderFrom); ok {
			_, _ = to.ReadFrom(strings.NewReader("two "))
		}
		if to, ok := w.(io.StringWriter); ok {
			_, _ = to.WriteString("three")
		}
	}})
	first := s.runsWith(http.StatusCreated, payment("past"))
	if s.replays(first, payment("past")); first.body != "one two three" {
		e.Errorf("the first answer is %+v", first)
	}
}

// streamCases test answers that take long: the lock is held until their end.
func streamCases() []testCase {
	return []testCase{
		{"a stream holds the lock to its end", streams, streaming},
		{"a stream, with the key in the body", streams, streamingByBody},
		{"a hijacked connection holds the lock", hijacking, hijacked},
	}
}

func streaming(e *environment)       { streamUnder(e, byHeader) }
func streamingByBody(e *environment) { streamUnder(e, byBody) }

// streamUnder serves two pieces under a lock and checks the lock between them.
func streamUnder(e *environment, k key) {
	proceed := make(chan struct{})
	defer close(proceed)
	s := e.serve(route{
		locks: []lock{{keys: []key{k}}},
		handler: func(c call) {
			if body, err := c.Body(); body != theKey || err != nil {
				e.Errorf("the handler reads %q, %v", body, err)
			}
			if lease, _ := c.Lease(); lease.Key() != theKey {
				e.Errorf("the lease is that of %q", lease.Key())
			}
			for _, piece := range []string{"one", "two"} {
				if err := c.Send(piece); err != nil {
					e.Errorf("Send: %v", err)
				}
				suite.ReceiveAnywhere(e.T, "the stream may go on", proceed)
			}
			if !e.held(theKey) {
				e.Error("the stream goes on, and the key is free")
			}
		},
	})
	answer := s.open(e.Context(), plain)
	for _, piece := range []string{"one", "two"} {
		if got, err := answer.next(); got != piece || err != nil {
			e.Errorf("the piece is %q, %v", got, err)
		}
		if !e.held(theKey) {
			e.Error("the stream goes on, and the key is free")
		}
		s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
		send(e.T, "the stream may go on", proceed)
	}
	if got := answer.rest(); !got.ok {
		e.Errorf("the stream ends with %+v", got)
	}
	e.events.await(e.T, core.Released, 1)
	if e.held(theKey) {
		e.Error("the stream has ended, and the key is locked")
	}
}

// The client has the complete answer while the handler still runs.
func hijacked(e *environment) {
	proceed := make(chan struct{})
	defer close(proceed)
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			if err := c.Hijack("done"); err != nil {
				e.Errorf("Hijack: %v", err)
			}
			suite.ReceiveAnywhere(e.T, "the handler may end", proceed)
		},
	})
	s.wantReply(plain, "done")
	if !e.held(theKey) {
		e.Error("the handler runs, and the key is free")
	}
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	send(e.T, "the handler may end", proceed)
	e.events.await(e.T, core.Released, 1)
}

// c.Response() of Echo treats a 1xx status as the answer, so the handler uses the wrapped
// writer.
func earlyHints(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Link", "</style.css>; rel=preload")
		net := innermost(t.ResponseWriter)
		net.WriteHeader(http.StatusEarlyHints)
		net.WriteHeader(http.StatusCreated)
		_, _ = net.Write([]byte("paid"))
	}})
	first := s.runsWith(http.StatusCreated, payment("hints"))
	again := s.replays(first, payment("hints"))
	if !slices.Equal(first.early, []int{http.StatusEarlyHints}) || again.early != nil {
		e.Errorf("before the first answer came %v, before the copy %v", first.early, again.early)
	}
}

// innermost returns the innermost writer that can be found by Unwrap.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return w
		}
		w = wrapper.Unwrap()
	}
}

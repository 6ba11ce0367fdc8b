package conformance

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// endingScenarios test handlers that do not return in the normal way, and clients that
// disconnect.
func endingScenarios() []testCase {
	crash := func(context.CancelFunc) { panic("crash") }
	abort := func(context.CancelFunc) { panic(http.ErrAbortHandler) }
	exit := func(leave context.CancelFunc) {
		leave() // net/http leaves the connection open
		runtime.Goexit()
	}
	return []testCase{
		{"a panic, inside the framework's recovery", everywhere, func(e *environment) { breaks(e, true, crash, false) }},
		{"http.ErrAbortHandler in an attempt", aborts, func(e *environment) { breaks(e, false, abort, false) }},
		{"Goexit of the handler", everywhere, func(e *environment) { breaks(e, false, exit, false) }},
		{"a panic frees the key, by an option", everywhere, func(e *environment) { breaks(e, true, crash, true) }},
		{"http.ErrAbortHandler frees the key, by an option", aborts, func(e *environment) { breaks(e, false, abort, true) }},
		{"Goexit frees the key, by an option", everywhere, func(e *environment) { breaks(e, false, exit, true) }},
		{"the client disconnects, and the handler goes on", disconnects, clientGoes},
		{"the client disconnects and cancels the handler, which answers", disconnects, func(e *environment) { clientCancels(e, true) }},
		{"the client disconnects and cancels the handler, which does not answer", disconnects, func(e *environment) { clientCancels(e, false) }},
		{"a timeout around the endpoint", wrapping, timeoutAround},
		{"the answer is stored before its first byte is sent", wrapping, storedFirst},
	}
}

// A failure is what a handler writes and decides before it fails.
type failure struct {
	status   int // written before; 0: nothing
	decision core.Ending
	known    bool // by default: the next request runs
	freed    bool // with WithFreeOnFailure: the next request runs
}

// failures are failures of a handler by the name of a request, which is also the key.
// adapter has a table of all.
var failures = map[string]failure{
	"nothing":          {freed: true},
	"a 503":            {status: http.StatusServiceUnavailable, freed: true},
	"a 201":            {status: http.StatusCreated},
	"a 201, EndAbort":  {status: http.StatusCreated, decision: core.EndAbort, known: true, freed: true},
	"a 500, EndCommit": {status: http.StatusInternalServerError, decision: core.EndCommit},
}

// breaks checks what becomes of requests whose handler ends by end. The answer that the handler wrote
// before is dropped, with its headers: the framework's recovery answers, or the connection ends. If free is true, the endpoint has the option WithFreeOnFailure.
func breaks(e *environment, recovers bool, end func(leave context.CancelFunc), free bool) {
	cancels := make(chan context.CancelFunc, 1)
	for name, f := range failures {
		broken := false
		s := e.serveEndpoint(endpoint{recovers: recovers, own: ownOptions{freeOnFailure: free}, handler: func(t invocation) {
			if !broken {
				broken = true
				t.attempt.Decide(f.decision)
				t.Header().Set("Location", "/payments/1")
				if f.status != 0 {
					t.WriteHeader(f.status)
					_, _ = t.Write([]byte("paid"))
				}
				end(<-cancels)
			}
			t.WriteHeader(http.StatusCreated)
		}})
		// The request has its own connection: net/http's client resends a request with an
		// Idempotency-Key if a reused connection breaks.
		request := httpRequest{keys: []string{`"` + name + `"`}, header: http.Header{"Connection": {"close"}}}
		e.events.forget()
		ctx, cancel := context.WithCancel(e.Context())
		cancels <- cancel
		switch answer := s.do(ctx, request); {
		case recovers && (answer.status != http.StatusInternalServerError || answer.header.Get("Location") != "" || answer.body == "paid"):
			e.Errorf("%s: the answer after the panic is %+v", name, answer)
		case !recovers && answer.err == nil:
			e.Errorf("%s: an answer of a handler that gave none: %+v", name, answer)
		}
		cancel()
		e.events.await(e.T, core.Released, 1)
		if f.known || free && f.freed {
			s.replays(s.runsWith(http.StatusCreated, request), request)
		} else {
			s.refuses(core.ErrOutcomeUnknown, request)
		}
	}
}

// The handler goes on after its client has left, and neither that nor a deadline outside ends
// its context. The client asks again, and gets the answer.
func clientGoes(e *environment) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	outer := make(chan context.Context, 2)
	s := e.serveEndpoint(endpoint{
		outer: func(_ http.ResponseWriter, r *http.Request) bool { outer <- r.Context(); return true },
		handler: func(t invocation) {
			cancel()
			suite.ReceiveAnywhere(e.T, "the server has learnt that the client left", (<-outer).Done())
			if n := e.locks.AttemptsWithoutClient(); n != 1 {
				e.Errorf("%d attempts without a client", n)
			}
			if err := t.r.Context().Err(); err != nil { // as the call of a payment provider would
				t.WriteHeader(http.StatusBadGateway)
				return
			}
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		},
	})
	if answer := s.do(ctx, payment("left")); answer.err == nil {
		e.Errorf("an answer for a client that has disconnected: %+v", answer)
	}
	e.events.await(e.T, core.Committed, 1)
	s.replays(httpAnswer{status: http.StatusCreated, body: "paid", header: http.Header{
		"Content-Type": {"text/plain; charset=utf-8"},
	}}, payment("left"))
}

// With an option the end of the request ends the handler's context. A handler that returns
// without an answer then may or may not have had its effect.
func clientCancels(e *environment, answers bool) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	gone := make(chan error, 1)
	s := e.serveEndpoint(endpoint{options: []core.Option{core.WithClientCancel(true)}, handler: func(t invocation) {
		cancel()
		suite.ReceiveAnywhere(e.T, "the context ends", t.r.Context().Done())
		gone <- t.r.Context().Err()
		if answers {
			t.WriteHeader(http.StatusCreated)
		}
	}})
	if answer := s.do(ctx, payment("left")); answer.err == nil {
		e.Errorf("an answer for a client that has disconnected: %+v", answer)
	}
	if err := suite.ReceiveAnywhere(e.T, "the handler receives the end of its context", gone); !errors.Is(err, context.Canceled) {
		e.Errorf("the handler's context: %v", err)
	}
	if !answers {
		e.events.await(e.T, core.Released, 1)
		s.refuses(core.ErrOutcomeUnknown, payment("left"))
		return
	}
	e.events.await(e.T, core.Committed, 1)
	s.replays(httpAnswer{status: http.StatusCreated, header: http.Header{}}, payment("left"))
}

// The client gets the 503 of http.TimeoutHandler, and the request completes. http.TimeoutHandler
// also answers when the request's context ends, which here happens once the handler runs.
func timeoutAround(e *environment) {
	var timeOut context.CancelFunc
	proceed := make(chan struct{})
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		timeOut()
		suite.ReceiveAnywhere(e.T, "the timeout is over", proceed)
		t.WriteHeader(http.StatusCreated)
	}})
	endless := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ctx context.Context
		ctx, timeOut = context.WithCancel(r.Context())
		defer timeOut()
		http.TimeoutHandler(endless, time.Minute, "too slow").ServeHTTP(w, r.WithContext(ctx))
	})
	s.runsWith(http.StatusServiceUnavailable, payment("timeout"))
	close(proceed)
	e.events.await(e.T, core.Committed, 1)
	s.Config.Handler = endless
	s.replays(httpAnswer{status: http.StatusCreated, header: http.Header{}}, payment("timeout"))
}

// A watchedWriter calls a function before the status is sent.
type watchedWriter struct {
	http.ResponseWriter
	onStatus func()
}

func (w watchedWriter) WriteHeader(status int) {
	w.onStatus()
	w.ResponseWriter.WriteHeader(status)
}

// The commit is delayed. Meanwhile nothing may be sent, even to a client that has disconnected.
func storedFirst(e *environment) {
	states := make(chan string, 2)
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	s := e.serveEndpoint(endpoint{options: []core.Option{core.WithClientCancel(true)}, handler: func(t invocation) {
		cancel()
		suite.ReceiveAnywhere(e.T, "the client has gone", t.r.Context().Done())
		release, seen := e.proxy.HoldCommand(redistest.Named("evalsha"))
		go func() {
			suite.ReceiveAnywhere(e.T, "the commit is sent", seen)
			time.Sleep(50 * time.Millisecond)
			release()
		}()
		t.WriteHeader(http.StatusCreated)
	}})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(watchedWriter{w, func() {
			for _, name := range e.names(e.Context(), ":r") {
				states <- storetest.RecordAt(e, e.rdb, name)["s"]
			}
		}}, r)
	})
	s.do(ctx, payment("stored"))
	if state := suite.ReceiveAnywhere(e.T, "the answer is sent", states); state != "D" {
		e.Errorf("when the answer was sent, its record was %q", state)
	}
	s.replays(httpAnswer{status: http.StatusCreated, header: http.Header{}}, payment("stored"))
}

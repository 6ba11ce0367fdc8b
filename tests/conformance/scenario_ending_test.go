package conformance

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// endingScenarios test handlers that do not return in the normal way, and clients that
// disconnect.
func endingScenarios() []testCase {
	return []testCase{
		{"a panic, inside the framework's recovery", everywhere, func(e *environment) { panics(e, false) }},
		{"http.ErrAbortHandler in an attempt", everywhere, func(e *environment) { abortHandler(e, false) }},
		{"a reverse proxy whose service ends the answer early", everywhere, proxiedAnswerBreaks},
		{"a reverse proxy whose service cannot be reached", everywhere, proxyReachesNothing},
		{"Goexit of the handler", everywhere, func(e *environment) { exits(e, false) }},
		{"a panic frees the key, by an option", everywhere, func(e *environment) { panics(e, true) }},
		{"http.ErrAbortHandler frees the key, by an option", everywhere, func(e *environment) { abortHandler(e, true) }},
		{"Goexit frees the key, by an option", everywhere, func(e *environment) { exits(e, true) }},
		{"a write after the handler has returned", everywhere, lateWrite},
		{"the client disconnects, and the handler goes on", everywhere, clientGoes},
		{"the client disconnects and cancels the handler, which answers", everywhere, func(e *environment) { clientCancels(e, true) }},
		{"the client disconnects and cancels the handler, which does not answer", everywhere, func(e *environment) { clientCancels(e, false) }},
		{"a timeout around the endpoint", everywhere, timeoutAround},
		{"the answer is stored before its first byte is sent", everywhere, storedFirst},
	}
}

// A failure is what a handler writes and decides before it fails.
type failure struct {
	status   int // written before; 0: nothing
	decision core.Decision
	known    bool // by default: the next request runs
	freed    bool // with FreeOnFailure: the next request runs
}

// failures are the failures of a handler by the name of a request, which is also the key.
var failures = map[string]failure{
	"nothing":              {freed: true},
	"nothing, DropAnswer":  {decision: core.DropAnswer, known: true, freed: true},
	"nothing, Uncertain":   {decision: core.Uncertain},
	"nothing, StoreAnswer": {decision: core.StoreAnswer},
	"a 500":                {status: http.StatusInternalServerError, freed: true},
	"a 500, Uncertain":     {status: http.StatusInternalServerError, decision: core.Uncertain},
	"a 500, StoreAnswer":   {status: http.StatusInternalServerError, decision: core.StoreAnswer},
	"a 503":                {status: http.StatusServiceUnavailable, freed: true},
	"a 409":                {status: http.StatusConflict, freed: true},
	"a 201":                {status: http.StatusCreated},
	"a 201, DropAnswer":    {status: http.StatusCreated, decision: core.DropAnswer, known: true, freed: true},
	"a 201, Uncertain":     {status: http.StatusCreated, decision: core.Uncertain},
	"a 422":                {status: http.StatusUnprocessableEntity},
}

// do writes and decides.
func (b failure) do(t invocation) {
	t.attempt.Decide(b.decision)
	t.Header().Set("Location", "/payments/1")
	if b.status != 0 {
		t.WriteHeader(b.status)
		_, _ = t.Write([]byte("paid"))
	}
}

// named returns a request with the name as its quoted key and in a header. The request has its
// own connection: net/http's client resends a request with an Idempotency-Key if a reused
// connection breaks.
func named(name string) httpRequest {
	return httpRequest{keys: []string{`"` + name + `"`}, header: http.Header{"X-Name": {name}, "Connection": {"close"}}}
}

// afterFailure sends a copy of a request whose handler has failed. free is as for failsOnce.
func (s *service) afterFailure(name string, free bool) {
	s.Helper()
	if f := failures[name]; !f.known && (!free || !f.freed) {
		s.refuses(core.ErrInterrupted, named(name))
		return
	}
	s.replays(s.runsWith(http.StatusCreated, named(name)), named(name))
}

// failsOnce serves a handler that fails for the first request of each name. If free is true,
// the endpoint has the option FreeOnFailure.
func (e *environment) failsOnce(recovers, free bool, end func()) *service {
	e.Helper()
	var broken sync.Map
	return e.serveEndpoint(endpoint{recovers: recovers, own: ownOptions{freeOnFailure: free}, handler: func(t invocation) {
		name := t.r.Header.Get("X-Name")
		if _, again := broken.LoadOrStore(name, true); !again {
			failures[name].do(t)
			end()
		}
		t.WriteHeader(http.StatusCreated)
	}})
}

// The answer that the handler wrote before is dropped, with its headers, and the recovery
// answers.
func panics(e *environment, free bool) {
	s := e.failsOnce(true, free, func() { panic("crash") })
	for name := range failures {
		crashed := s.runsWith(http.StatusInternalServerError, named(name))
		if crashed.header.Get("Location") != "" || crashed.body == "paid" {
			e.Errorf("%s: the answer after the panic is %+v", name, crashed)
		}
		s.afterFailure(name, free)
	}
}

func abortHandler(e *environment, free bool) {
	s := e.failsOnce(false, free, func() { panic(http.ErrAbortHandler) })
	for name := range failures {
		if answer := s.do(e.Context(), named(name)); answer.err == nil {
			e.Errorf("%s: an answer of a handler that aborted: %+v", name, answer)
		}
		s.afterFailure(name, free)
	}
}

func exits(e *environment, free bool) {
	cancels := make(chan context.CancelFunc, 1)
	s := e.failsOnce(false, free, func() {
		(<-cancels)() // net/http leaves the connection open
		runtime.Goexit()
	})
	for name := range failures {
		e.events.forget()
		ctx, cancel := context.WithCancel(e.Context())
		cancels <- cancel
		if answer := s.do(ctx, named(name)); answer.err == nil {
			e.Errorf("%s: an answer of a handler that gave none: %+v", name, answer)
		}
		e.events.await(e.T, core.Released, 1)
		s.afterFailure(name, free)
	}
}

// The service charges and ends its answer early. Then the reverse proxy panics.
func proxiedAnswerBreaks(e *environment) {
	grpcService := startHTTP(e.T, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	to, err := url.Parse(grpcService.URL)
	if err != nil {
		e.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	s := e.serveEndpoint(endpoint{handler: func(t invocation) { proxy.ServeHTTP(t.ResponseWriter, t.r) }})
	if answer := s.do(e.Context(), payment("proxied")); answer.err == nil {
		e.Errorf("an answer of a service that ended its answer early: %+v", answer)
	}
	s.refuses(core.ErrInterrupted, payment("proxied"))
	if n := s.runs.Load(); n != 1 {
		e.Errorf("charged %d times", n)
	}
}

// Nothing was sent, so the copy is passed on, too.
func proxyReachesNothing(e *environment) {
	closed := startHTTP(e.T, http.NotFoundHandler())
	to, err := url.Parse(closed.URL)
	if err != nil {
		e.Fatal(err)
	}
	closed.Close()
	for name, own := range map[string]func(http.ResponseWriter, *http.Request, error){
		"default": nil,
		"own":     func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusGatewayTimeout) },
	} {
		proxy := nethttplock.ReverseProxy(&httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport:    &http.Transport{DisableKeepAlives: true},
			ErrorLog:     log.New(io.Discard, "", 0),
			ErrorHandler: own,
		})
		s := e.serveEndpoint(endpoint{handler: func(t invocation) { proxy.ServeHTTP(t.ResponseWriter, t.r) }})
		status := http.StatusBadGateway
		if own != nil {
			status = http.StatusGatewayTimeout
		}
		s.runsWith(status, payment(name))
		s.runsWith(status, payment(name))
	}
}

func lateWrite(e *environment) {
	late := make(chan error, 1)
	proceed := make(chan struct{})
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		_, _ = io.WriteString(t, "paid")
		w := innermost(t.ResponseWriter)
		go func() {
			<-proceed
			_, err := w.Write([]byte("late"))
			late <- err
		}()
	}})
	first := s.runsWith(http.StatusOK, payment("late"))
	close(proceed)
	if err := suite.ReceiveAnywhere(e.T, "the late write", late); err == nil {
		e.Error("a write after the handler has returned is no error")
	}
	if s.replays(first, payment("late")); first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
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
		s.refuses(core.ErrInterrupted, payment("left"))
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
				states <- e.rdb.HGet(e.Context(), name, "s").Val()
			}
		}}, r)
	})
	s.do(ctx, payment("stored"))
	if state := suite.ReceiveAnywhere(e.T, "the answer is sent", states); state != "D" {
		e.Errorf("when the answer was sent, its record was %q", state)
	}
	s.replays(httpAnswer{status: http.StatusCreated, header: http.Header{}}, payment("stored"))
}

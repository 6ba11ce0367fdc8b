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
)

// endingScenarios are about handlers that do not return as they should, and
// clients that do not stay.
func endingScenarios() []testCase {
	return []testCase{
		{"a panic, inside the framework's recovery", everywhere, panics},
		{"http.ErrAbortHandler in an attempt", everywhere, abortHandler},
		{"a reverse proxy whose service breaks off", everywhere, proxiedAnswerBreaks},
		{"Goexit of the handler", everywhere, exits},
		{"a write after the handler has returned", everywhere, lateWrite},
		{"the client goes, and the handler answers", everywhere, clientGoes},
		{"the client goes, and the handler answers nothing", everywhere, clientGoesSilently},
		{"a timeout around the endpoint", everywhere, timeoutAround},
		{"the answer is stored before its first byte is sent", everywhere, storedFirst},
	}
}

// A breaking is a handler that writes and decides something before it breaks, and
// whether that leaves the outcome unknown.
type breaking struct {
	status   int // written before; 0: nothing
	decision core.Decision
	unknown  bool
}

// breakings are what the name of a request makes its handler do. The name is its
// key too.
var breakings = map[string]breaking{
	"nothing":              {},
	"nothing, Uncertain":   {decision: core.Uncertain, unknown: true},
	"nothing, StoreAnswer": {decision: core.StoreAnswer, unknown: true},
	"a 500":                {status: http.StatusInternalServerError},
	"a 500, Uncertain":     {status: http.StatusInternalServerError, decision: core.Uncertain, unknown: true},
	"a 500, StoreAnswer":   {status: http.StatusInternalServerError, decision: core.StoreAnswer, unknown: true},
	"a 409":                {status: http.StatusConflict},
	"a 201":                {status: http.StatusCreated, unknown: true},
	"a 201, DropAnswer":    {status: http.StatusCreated, decision: core.DropAnswer},
	"a 201, Uncertain":     {status: http.StatusCreated, decision: core.Uncertain, unknown: true},
	"a 422":                {status: http.StatusUnprocessableEntity, unknown: true},
}

// do writes and decides.
func (b breaking) do(t turn) {
	t.attempt.Decide(b.decision)
	t.Header().Set("Location", "/payments/1")
	if b.status != 0 {
		t.WriteHeader(b.status)
		_, _ = t.Write([]byte("paid"))
	}
}

// named is a request of which name is the key, quoted, and a header. It has a
// connection of its own: if one that was used before breaks, net/http's client
// sends a request with an Idempotency-Key again by itself.
func named(name string) sent {
	return sent{keys: []string{`"` + name + `"`}, header: http.Header{"X-Name": {name}, "Connection": {"close"}}}
}

// afterBreaking sends a copy of a request whose handler has broken.
func (s *shop) afterBreaking(name string) {
	s.Helper()
	if breakings[name].unknown {
		s.refuses(core.ErrInterrupted, named(name))
		return
	}
	s.replays(s.runsWith(http.StatusCreated, named(name)), named(name))
}

// breaks serves a handler that breaks for the first request of each name.
func (e *env) breaks(recovers bool, end func()) *shop {
	e.Helper()
	var broken sync.Map
	return e.shop(endpoint{recovers: recovers, handler: func(t turn) {
		name := t.r.Header.Get("X-Name")
		if _, again := broken.LoadOrStore(name, true); !again {
			breakings[name].do(t)
			end()
		}
		t.WriteHeader(http.StatusCreated)
	}})
}

// What the handler has answered before is dropped, with its headers, and the
// recovery answers.
func panics(e *env) {
	s := e.breaks(true, func() { panic("crash") })
	for name := range breakings {
		crashed := s.runsWith(http.StatusInternalServerError, named(name))
		if crashed.header.Get("Location") != "" || crashed.body == "paid" {
			e.Errorf("%s: the answer after the panic is %+v", name, crashed)
		}
		s.afterBreaking(name)
	}
}

func abortHandler(e *env) {
	s := e.breaks(false, func() { panic(http.ErrAbortHandler) })
	for name := range breakings {
		if answer := s.do(e.Context(), named(name)); answer.err == nil {
			e.Errorf("%s: an answer of a handler that aborted: %+v", name, answer)
		}
		s.afterBreaking(name)
	}
}

func exits(e *env) {
	leave := make(chan context.CancelFunc, 1)
	s := e.breaks(false, func() {
		(<-leave)() // net/http leaves the connection open
		runtime.Goexit()
	})
	for name := range breakings {
		e.events.forget()
		ctx, cancel := context.WithCancel(e.Context())
		leave <- cancel
		if answer := s.do(ctx, named(name)); answer.err == nil {
			e.Errorf("%s: an answer of a handler that gave none: %+v", name, answer)
		}
		e.events.await(e.T, core.Released, 1)
		s.afterBreaking(name)
	}
}

// The service has charged and broken its answer off. The proxy panics then.
func proxiedAnswerBreaks(e *env) {
	service := startHTTP(e.T, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	to, err := url.Parse(service.URL)
	if err != nil {
		e.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	s := e.shop(endpoint{handler: func(t turn) { proxy.ServeHTTP(t.ResponseWriter, t.r) }})
	if answer := s.do(e.Context(), payment("proxied")); answer.err == nil {
		e.Errorf("an answer of a service that broke off: %+v", answer)
	}
	s.refuses(core.ErrInterrupted, payment("proxied"))
	if n := s.runs.Load(); n != 1 {
		e.Errorf("charged %d times", n)
	}
}

func lateWrite(e *env) {
	late := make(chan error, 1)
	goOn := make(chan struct{})
	s := e.shop(endpoint{handler: func(t turn) {
		_, _ = io.WriteString(t, "paid")
		w := innermost(t.ResponseWriter)
		go func() {
			<-goOn
			_, err := w.Write([]byte("late"))
			late <- err
		}()
	}})
	first := s.runsWith(http.StatusOK, payment("late"))
	close(goOn)
	if err := await(e.T, "the late write", late); err == nil {
		e.Error("a write after the handler has returned is no error")
	}
	if s.replays(first, payment("late")); first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
	}
}

// Whoever has answered has done what was to be done.
func clientGoes(e *env) { clientLeaves(e, true) }

// A handler that leaves silently because its context has ended has not said
// whether it has done anything: silence is no success then.
func clientGoesSilently(e *env) { clientLeaves(e, false) }

func clientLeaves(e *env, answers bool) {
	ctx, leave := context.WithCancel(e.Context())
	defer leave()
	gone := make(chan error, 1)
	s := e.shop(endpoint{handler: func(t turn) {
		leave()
		await(e.T, "the context ends", t.r.Context().Done())
		gone <- t.r.Context().Err()
		if answers {
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		}
	}})
	if answer := s.do(ctx, payment("left")); answer.err == nil {
		e.Errorf("an answer for a client that has gone: %+v", answer)
	}
	if err := await(e.T, "the handler knows", gone); !errors.Is(err, context.Canceled) {
		e.Errorf("the handler's context: %v", err)
	}
	if !answers {
		e.events.await(e.T, core.Released, 1)
		s.refuses(core.ErrInterrupted, payment("left"))
		return
	}
	e.events.await(e.T, core.Committed, 1)
	s.replays(got{status: http.StatusCreated, body: "paid", header: http.Header{
		"Content-Type": {"text/plain; charset=utf-8"},
	}}, payment("left"))
}

// The client has its 503, and the request is done. http.TimeoutHandler answers as
// well when the request's context ends, which here is when the handler is known to
// run.
func timeoutAround(e *env) {
	var timeOut context.CancelFunc
	goOn := make(chan struct{})
	s := e.shop(endpoint{handler: func(t turn) {
		timeOut()
		await(e.T, "the timeout is over", goOn)
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
	close(goOn)
	e.events.await(e.T, core.Committed, 1)
	s.Config.Handler = endless
	s.replays(got{status: http.StatusCreated, header: http.Header{}}, payment("timeout"))
}

// A watched writer looks at Redis when the status is about to be sent.
type watched struct {
	http.ResponseWriter
	look func()
}

func (w watched) WriteHeader(status int) {
	w.look()
	w.ResponseWriter.WriteHeader(status)
}

// The commit is held up for a while, in which nothing may be sent, even to a
// client that has gone.
func storedFirst(e *env) {
	states := make(chan string, 2)
	ctx, leave := context.WithCancel(e.Context())
	defer leave()
	s := e.shop(endpoint{handler: func(t turn) {
		leave()
		await(e.T, "the client has gone", t.r.Context().Done())
		release, seen := e.proxy.HoldCommand(redistest.Named("evalsha"))
		go func() {
			await(e.T, "the commit is sent", seen)
			time.Sleep(50 * time.Millisecond)
			release()
		}()
		t.WriteHeader(http.StatusCreated)
	}})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(watched{w, func() {
			for _, name := range e.names(e.Context(), ":r") {
				states <- e.rdb.HGet(e.Context(), name, "s").Val()
			}
		}}, r)
	})
	s.do(ctx, payment("stored"))
	if state := await(e.T, "the answer is sent", states); state != "D" {
		e.Errorf("when the answer was sent, its record was %q", state)
	}
	s.replays(got{status: http.StatusCreated, header: http.Header{}}, payment("stored"))
}

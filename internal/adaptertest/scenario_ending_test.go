package adaptertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

// endingScenarios are about handlers that do not return as they should, and
// clients that do not stay.
func endingScenarios() []testCase {
	return []testCase{
		{"a panic, inside the framework's recovery", everywhere, panics},
		{"http.ErrAbortHandler, and a panic that is uncertain", everywhere, abortHandler},
		{"Goexit of the handler", everywhere, exits},
		{"a write after the handler has returned", everywhere, lateWrite},
		{"the client goes, and the handler answers", everywhere, clientGoes},
		{"the client goes, and the handler answers nothing", everywhere, clientGoesSilently},
		{"a timeout around the endpoint", everywhere, timeoutAround},
		{"the answer is stored before its first byte is sent", everywhere, storedFirst},
	}
}

// What the handler has answered before is dropped, with its headers, and the
// recovery answers.
func panics(e *env) {
	first := true
	s := e.shop(endpoint{
		recovers: true,
		handler: func(t turn) {
			t.Header().Set("Location", "/payments/1")
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
			if first {
				first = false
				panic("crash")
			}
		},
	})
	crashed := s.runsWith(http.StatusInternalServerError, payment("panic"))
	if crashed.header.Get("Location") != "" || crashed.body == "paid" {
		e.Errorf("the answer after the panic is %+v", crashed)
	}
	s.replays(s.runsWith(http.StatusCreated, payment("panic")), payment("panic"))
}

func abortHandler(e *env) {
	s := e.shop(endpoint{handler: func(t turn) {
		_, _ = t.Write([]byte("paid"))
		if t.r.Header.Get("X-Decide") != "" {
			t.attempt.Decide(core.Uncertain)
		}
		panic(http.ErrAbortHandler)
	}})
	for range 2 {
		if answer := s.do(e.Context(), payment("abort")); answer.err == nil {
			e.Errorf("an answer of a handler that aborted: %+v", answer)
		}
	}
	if n := s.runs.Load(); n != 2 {
		e.Errorf("the handler has run %d times", n)
	}
	uncertain := payment("abort")
	uncertain.header = http.Header{"X-Decide": {"uncertain"}}
	if answer := s.do(e.Context(), uncertain); answer.err == nil {
		e.Errorf("an answer of a handler that aborted: %+v", answer)
	}
	s.refuses(core.ErrInterrupted, payment("abort"))
}

func exits(e *env) {
	var runs atomic.Int64
	ctx, leave := context.WithCancel(e.Context())
	s := e.shop(endpoint{
		handler: func(t turn) {
			t.WriteHeader(http.StatusCreated)
			if runs.Add(1) == 1 {
				leave() // net/http leaves the connection open
				runtime.Goexit()
			}
		},
	})
	if answer := s.do(ctx, payment("exit")); answer.err == nil {
		e.Errorf("an answer of a handler that gave none: %+v", answer)
	}
	e.events.await(e.T, core.Released, 1)
	s.replays(s.runsWith(http.StatusCreated, payment("exit")), payment("exit"))
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

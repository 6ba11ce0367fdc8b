package conformance

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// endingCases end a handler in each way. The lock is held until then and free afterwards.
func endingCases() []testCase {
	return []testCase{
		{"the handler's own success", everywhere, handlerReplies},
		{"the handler's own conflict", everywhere, handlerRefuses},
		{"panic, inside the framework's recovery", everywhere, func(e *environment) { handlerPanics(e, byHeader) }},
		{"panic, with the key in the body", everywhere, func(e *environment) { handlerPanics(e, byBody) }},
		{"http.ErrAbortHandler", aborts, handlerAborts},
		{"Goexit", everywhere, handlerExits},
		{"the lock is lost, and the handler does not answer", seenAnswers, handlerIsCutOff},
		{"outer middlewares get back their own context", ownContext, contextIsRestored},
	}
}

func handlerReplies(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		outer: func(f frame) {
			f.Next()
			if e.held(theKey) {
				e.Error("the key is locked after the handler has returned")
			}
		},
		handler: func(c call) {
			lease, ok := c.Lease()
			if token := e.rdb.Get(c.Context(), e.prefix+theKey).Val(); !ok || token != lease.Token() {
				e.Error("the key does not carry the lease's token")
			}
			if lease.Key() != theKey || c.Context().Err() != nil {
				e.Errorf("lease of %q, context %v", lease.Key(), c.Context().Err())
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
	s.wantReply(plain, "done")
}

// A conflict that the handler reports differs from one that the lock reports.
func handlerRefuses(e *environment) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}}},
		handler: func(c call) { c.Refuse("no funds") },
	})
	conflict := outcome{status: e.rowOf(refused(core.ErrBusy, 0)).status}
	s.wantRefusal(plain, conflict)
	if got := s.send(e.Context(), plain); !says(got, "no funds") {
		e.Errorf("the answer does not contain the handler's text: %s", got.raw)
	}
}

// A handler that returns without an answer, because its lock was lost, must not look like a success,
// and its client must not try again.
func handlerIsCutOff(e *environment) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}, options: []core.Option{core.WithMaxHold(time.Millisecond)}}},
		handler: func(c call) { suite.ReceiveAnywhere(e.T, "the lock is lost", c.Context().Done()) },
	})
	s.wantRefusal(plain, e.rowOf(core.ErrMaxHold))
}

// handlerPanics checks that a panic passes through the lock unchanged, and that the lock is
// free afterwards.
func handlerPanics(e *environment, k key) {
	crash := errors.New("crash")
	s := e.serve(route{
		recovers: true,
		outer:    func(f frame) { wantPanicToPass(e, f, crash) },
		locks:    []lock{{keys: []key{k}}},
		handler: func(call) {
			if !e.held(theKey) {
				e.Error("the handler runs, and the key is free")
			}
			panic(crash)
		},
	})
	crashed := outcome{status: e.rowOf(keyError()).status}
	s.wantRefusal(plain, crashed)
	s.wantRefusal(plain, crashed)
}

// If a handler aborts, the server closes the connection.
func handlerAborts(e *environment) {
	s := e.serve(route{
		outer:   func(f frame) { wantPanicToPass(e, f, http.ErrAbortHandler) },
		locks:   []lock{{keys: []key{byHeader}}},
		handler: func(call) { panic(http.ErrAbortHandler) },
	})
	if got := s.send(e.Context(), plain); got.err == nil {
		e.Errorf("an answer of a handler that aborted: %+v", got)
	}
}

// wantPanicToPass calls Next, which has to panic with the value. It checks the key and the
// context during the panic.
func wantPanicToPass(e *environment, f frame, value any) {
	before := f.Context()
	defer func() {
		caught := recover()
		if f.Context() != before {
			e.Error("the handler has panicked, and the request has another context")
		}
		if caught != value {
			e.Errorf("the panic is %v, not %v", caught, value)
		}
		if e.held(theKey) {
			e.Error("the handler has panicked, and the key is locked")
		}
		panic(caught)
	}()
	f.Next()
}

// A handler that ends its goroutine may leave its client without an answer.
func handlerExits(e *environment) {
	ctx, cancel := context.WithCancel(e.Context())
	s := e.serve(route{
		outer: func(f frame) {
			defer cancel()
			defer func() {
				if e.held(theKey) {
					e.Error("the handler's goroutine has ended, and the key is locked")
				}
			}()
			f.Next()
		},
		locks:   []lock{{keys: []key{byHeader}}},
		handler: func(call) { runtime.Goexit() },
	})
	if got := s.send(ctx, plain); got.ok {
		e.Errorf("a success of a handler that gave none: %+v", got)
	}
	e.events.await(e.T, core.Released, 1)
}

// A middleware around the lock finds its own context after the handler. That context goes on
// when the lease has ended.
func contextIsRestored(e *environment) {
	inner := make(chan context.Context, 1)
	s := e.serve(route{
		outer: func(f frame) {
			before := f.Context()
			f.Next()
			if f.Context() != before || before.Err() != nil {
				e.Errorf("the request has another context, or its own has ended: %v", f.Context().Err())
			}
			if _, ok := core.LeaseFromContext(f.Context()); ok {
				e.Error("the context carries a lease that has ended")
			}
			select {
			case lapsed := <-inner:
				if lapsed.Err() == nil {
					e.Error("the handler's context goes on after its lease")
				}
			default:
				e.Error("the handler has not run")
			}
		},
		group: []lock{{keys: []key{bySecond}}},
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			inner <- c.Context()
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

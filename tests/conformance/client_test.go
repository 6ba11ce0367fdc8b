package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
)

// clientCases are about what happens while a handler runs, or a request waits:
// the client goes, the lease is lost.
func clientCases() []testCase {
	return []testCase{
		{"the client goes while it waits", everywhere, clientGoesWaiting},
		{"the client goes while the handler runs", everywhere, clientGoesRunning},
		{"the lease is lost while the handler runs", everywhere, leaseLost},
		{"held too long", everywhere, heldTooLong},
	}
}

// bodiless is a request after which the server has nothing to read: only then
// does net/http notice that its client has gone.
var bodiless = request{keys: []string{theKey}}

// A client that has gone stands in no line any more.
func clientGoesWaiting(e *env) {
	s := e.serve(route{locks: []lock{{
		keys: []key{byHeader}, options: []core.Option{core.WithWait(time.Minute)},
	}}})
	e.take(theKey)
	ctx, leave := context.WithCancel(e.Context())
	defer leave()
	left := make(chan struct{})
	go func() {
		defer close(left)
		e.events.await(e.T, core.Waiting, 1)
		leave()
	}()
	if got := s.send(ctx, bodiless); got.ok {
		e.Errorf("an answer for a client that has gone: %+v", got)
	}
	<-left
	for _, event := range e.events.await(e.T, core.Refused, 1) {
		if !errors.Is(event.Err, context.Canceled) {
			e.Errorf("refused because of %v", event.Err)
		}
	}
	e.free(theKey)
}

// The lock ends with the handler, not with the client.
func clientGoesRunning(e *env) {
	started, gone := make(chan struct{}, 2), make(chan struct{}, 2) // 2: for one that must not run
	end := make(chan struct{})
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		outer: func(f frame) {
			f.Next()
			if f.Context().Err() != nil && e.held(theKey) {
				e.Error("the handler has returned, and the key is locked")
			}
		},
		handler: func(c call) {
			started <- struct{}{}
			await(e.T, "the context ends", c.Context().Done())
			gone <- struct{}{}
			await(e.T, "the handler may end", end)
		},
	})
	defer close(end)
	ctx, leave := context.WithCancel(e.Context())
	defer leave()
	left := make(chan struct{})
	go func() {
		defer close(left)
		await(e.T, "the handler runs", started)
		leave()
	}()
	if got := s.send(ctx, bodiless); got.ok {
		e.Errorf("an answer for a client that has gone: %+v", got)
	}
	<-left
	await(e.T, "the handler knows", gone)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	if !e.held(theKey) {
		e.Error("the key is free, and the handler runs")
	}
	give(e.T, "the handler may end", end)
	e.events.await(e.T, core.Released, 1)
}

// A lost lease ends the handler's context and leaves its answer alone.
func leaseLost(e *env) {
	s := e.serve(route{
		locks: []lock{{
			keys: []key{byHeader}, options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		}},
		handler: func(c call) {
			e.free(theKey)
			await(e.T, "the context ends", c.Context().Done())
			if cause := context.Cause(c.Context()); !errors.Is(cause, core.ErrLost) {
				e.Errorf("the cause is %v", cause)
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

// So does a lease that was held as long as it may be.
func heldTooLong(e *env) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}, options: []core.Option{core.WithMaxHold(50 * time.Millisecond)}}},
		handler: func(c call) {
			await(e.T, "the context ends", c.Context().Done())
			if cause := context.Cause(c.Context()); !errors.Is(cause, core.ErrMaxHold) {
				e.Errorf("the cause is %v", cause)
			}
			c.Refuse("no funds")
		},
	})
	if got := s.send(e.Context(), plain); got.ok || !says(got, "no funds") {
		e.Errorf("the handler's answer became %s", got.raw)
	}
}

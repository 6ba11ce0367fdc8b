package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// clientCases change something while a handler runs or a request waits: the client
// disconnects, or the lease is lost.
func clientCases() []testCase {
	return []testCase{
		{"the client disconnects while its request waits", disconnects, clientGoesWaiting},
		{"the client disconnects while the handler runs", disconnects, clientGoesRunning},
		{"the lease is lost while the handler runs", everywhere, leaseLost},
		{"the lease reaches its maximum hold", everywhere, heldTooLong},
	}
}

// bodiless is a request without a body. net/http notices that a client has disconnected only
// after it has read the body.
var bodiless = request{keys: []string{theKey}}

// A request leaves the queue when its client disconnects.
func clientGoesWaiting(e *environment) {
	s := e.serve(route{locks: []lock{{
		keys: []key{byHeader}, options: []core.Option{core.WithWait(time.Minute)},
	}}})
	e.take(theKey)
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	left := make(chan struct{})
	go func() {
		defer close(left)
		e.events.await(e.T, core.Waiting, 1)
		cancel()
	}()
	if got := s.send(ctx, bodiless); got.ok {
		e.Errorf("an answer for a client that has disconnected: %+v", got)
	}
	<-left
	for _, event := range e.events.await(e.T, core.Refused, 1) {
		if !errors.Is(event.Err, context.Canceled) {
			e.Errorf("refused because of %v", event.Err)
		}
	}
	e.free(theKey)
}

// The lock is released when the handler returns, not when the client disconnects.
func clientGoesRunning(e *environment) {
	started, gone := make(chan struct{}, 2), make(chan struct{}, 2) // 2: for one that must not run
	end := make(chan struct{})
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		outer: func(f frame) {
			f.Next()
			if f.Context().Err() != nil && e.held(theKey) {
				e.Error("the key is locked after the handler has returned")
			}
		},
		handler: func(c call) {
			started <- struct{}{}
			suite.ReceiveAnywhere(e.T, "the context ends", c.Context().Done())
			gone <- struct{}{}
			suite.ReceiveAnywhere(e.T, "the handler may end", end)
		},
	})
	defer close(end)
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	left := make(chan struct{})
	go func() {
		defer close(left)
		suite.ReceiveAnywhere(e.T, "the handler runs", started)
		cancel()
	}()
	if got := s.send(ctx, bodiless); got.ok {
		e.Errorf("an answer for a client that has disconnected: %+v", got)
	}
	<-left
	suite.ReceiveAnywhere(e.T, "the handler receives the end of its context", gone)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	if !e.held(theKey) {
		e.Error("the key is free while the handler runs")
	}
	send(e.T, "the handler may end", end)
	e.events.await(e.T, core.Released, 1)
}

// A lost lease ends the handler's context. The handler's answer is sent unchanged.
func leaseLost(e *environment) {
	s := e.serve(route{
		locks: []lock{{
			keys: []key{byHeader}, options: []core.Option{core.WithTTL(shortLease), core.WithWait(patience)},
		}},
		handler: func(c call) {
			e.loseLease(c.Context(), theKey)
			if cause := context.Cause(c.Context()); !errors.Is(cause, core.ErrLost) {
				e.Errorf("the cause is %v", cause)
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

// A lease that reaches its maximum hold ends the handler's context.
func heldTooLong(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}, options: []core.Option{core.WithMaxHold(50 * time.Millisecond)}}},
		handler: func(c call) {
			suite.ReceiveAnywhere(e.T, "the context ends", c.Context().Done())
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

package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// detachCases let a goroutine go on under the locks of a handler that has answered.
func detachCases() []testCase {
	return []testCase{
		{"work goes on after the answer, and a second request is busy until its end", everywhere, func(e *environment) {
			workGoesOn(e, func(c call) { c.Reply("accepted") })
		}},
		{"work goes on after a panic of its handler", everywhere, func(e *environment) {
			workGoesOn(e, func(call) { panic(errors.New("crash")) })
		}},
		{"work that goes on learns of the loss of a lock", everywhere, workIsLost},
		{"a lock without WithMaxHold is not detached", everywhere, limitIsRequired},
		{"work that goes on has the values of its own request, under load", everywhere, workUnderLoad},
	}
}

// detachable returns two locks with this option around a handler.
func detachable(r route) route {
	limit := []core.Option{core.WithMaxHold(5 * time.Minute)}
	r.group = []lock{{keys: []key{bySecond}, options: limit}}
	r.locks = []lock{{keys: []key{byHeader}, options: limit}}
	return r
}

// detach calls Detach in a handler. If that fails, so does the test, and the answer says so.
func (e *environment) detach(c call) *core.LeaseSet {
	e.Helper()
	work, err := core.Detach(c.Context())
	if err != nil {
		e.Errorf("Detach: %v", err)
		c.Refuse("not detached")
	}
	return work
}

func workGoesOn(e *environment, end func(call)) {
	works := make(chan *core.LeaseSet, 1)
	var served atomic.Int32
	s := e.serve(detachable(route{
		recovers: true,
		outer:    traceFrame,
		handler: func(c call) {
			if served.Add(1) > 1 {
				c.Reply("second")
				return
			}
			work := e.detach(c)
			works <- work
			err := e.locks.With(core.WithWait(0)).Do(c.Context(), theKey, func(context.Context) error { return nil })
			if !errors.Is(err, core.ErrBusy) {
				e.Errorf("a lock of the handler: %v", err)
			}
			end(c)
		},
	}))
	_ = s.send(e.Context(), plain)
	work := suite.Receive(e.T, "the handler has detached its locks", works)
	s.wantRefusal(request{keys: []string{theKey}, second: "another"}, e.rowOf(refused(core.ErrBusy, defaultRetryAfter)))
	if ctx := work.Context(); ctx.Err() != nil || ctx.Value(traceKey{}) != theTrace {
		e.Errorf("the context of the work: %v, value %v", ctx.Err(), ctx.Value(traceKey{}))
	}
	for _, key := range []string{theKey, secondKey} {
		if !e.held(key) || work.Lease(key).Token() != e.rdb.Get(e.Context(), e.prefix+key).Val() {
			e.Errorf("%q is not held by the work", key)
		}
	}
	if err := work.Release(e.Context()); err != nil {
		e.Errorf("Release: %v", err)
	}
	s.wantReply(plain, "second")
}

func workIsLost(e *environment) {
	works := make(chan *core.LeaseSet, 1)
	s := e.serve(detachable(route{handler: func(c call) {
		works <- e.detach(c)
		c.Reply("accepted")
	}}))
	s.wantReply(plain, "accepted")
	work := suite.Receive(e.T, "the handler has detached its locks", works)
	e.loseLease(work.Context(), theKey)
	if cause := context.Cause(work.Context()); !errors.Is(cause, core.ErrLost) {
		e.Errorf("the context of the work ends with %v", cause)
	}
	if err := work.Release(e.Context()); !errors.Is(err, core.ErrLost) || e.held(secondKey) {
		e.Errorf("Release: %v; the other key is held: %v", err, e.held(secondKey))
	}
}

// Then the handler has its locks, as before.
func limitIsRequired(e *environment) {
	r := detachable(route{handler: func(c call) {
		if work, err := core.Detach(c.Context()); work != nil || err == nil || !e.held(theKey) || !e.held(secondKey) {
			e.Errorf("Detach: %v, %v", work, err)
		}
		c.Reply("done")
	}})
	r.group[0].options = nil
	e.serve(r).wantReply(plain, "done")
	e.wantLeases(secondKey, theKey)
}

// A framework may use the context of a request again, for another one.
func workUnderLoad(e *environment) {
	const waves, width = 4, 8
	var requests atomic.Int32
	var works sync.WaitGroup
	served := make(chan struct{}) // closed when all requests are
	s := e.serve(detachable(route{
		outer: func(f frame) {
			f.SetContext(context.WithValue(f.Context(), numberKey{}, requests.Add(1)))
			f.Next()
		},
		handler: func(c call) {
			work, number, lease := e.detach(c), c.Context().Value(numberKey{}), ""
			if held, ok := c.Lease(); ok {
				lease = held.Key()
			}
			works.Go(func() {
				defer func() { _ = work.Release(context.Background()) }()
				for last := false; !last; {
					select {
					case <-served:
						last = true
					case <-time.After(time.Millisecond):
					}
					held, _ := core.LeaseFromContext(work.Context())
					if got := work.Context().Value(numberKey{}); got != number || held.Key() != lease || work.Context().Err() != nil {
						e.Errorf("request %v for %q: %v, %q, %v", number, lease, got, held.Key(), work.Context().Err())
					}
				}
			})
			c.Reply("accepted")
		},
	}))
	for wave := range waves {
		var sent sync.WaitGroup
		for i := range width {
			sent.Go(func() {
				s.wantReply(request{keys: []string{fmt.Sprint("key-", wave, "-", i)}, second: fmt.Sprint("second-", wave, "-", i)}, "accepted")
			})
		}
		sent.Wait()
	}
	close(served)
	works.Wait()
}

// numberKey is the key of the number of a request in its context.
type numberKey struct{}

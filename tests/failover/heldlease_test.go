package failover

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A heldLease is a lease under observation.
type heldLease struct {
	t           *testing.T
	scenario    context.Context
	lease       *core.Lease
	hold        *history.Hold
	ttl         time.Duration
	isElsewhere bool                      // its master does not fail
	released    chan struct{}             // closed when the holder releases it
	lost        atomic.Pointer[time.Time] // when its context ended
	lateness    *atomic.Int64             // of the scenario
	observed    chan struct{}             // closed when the observation has ended
}

// A busy machine may delay the end of the lease's context, and runs it in another thread
// than the control, which measures the delay. lateTolerance bounds the difference of the
// two, and controlTime is how long a control takes.
const (
	lateTolerance = 250 * time.Millisecond
	controlTime   = 5 * time.Millisecond
)

// hold takes a lock and observes its lease.
func (s *scenario) hold(p *process, holder, key string, ttl time.Duration) *heldLease {
	s.t.Helper()
	lease, err := p.locks.With(core.WithTTL(ttl), core.WithFencing(true), core.WithWait(patience)).Lock(s.ctx, key)
	if err != nil {
		s.t.Fatalf("%s: %v", holder, err)
	}
	h := &heldLease{
		t: s.t, scenario: s.ctx, lease: lease, ttl: ttl, released: make(chan struct{}), lateness: &s.lateness, observed: make(chan struct{}),
		hold: &history.Hold{Key: key, Holder: holder, Granted: s.history.Now(), Fence: lease.Fence()},
	}
	context.AfterFunc(lease.Context(), func() {
		now := time.Now()
		h.lost.Store(&now)
	})
	s.group.Go(h.observe)
	return h
}

// observe fails the test if the validity of the lease exceeds its TTL in Redis, or if the
// context does not end with the validity. Contexts end late on a busy machine, so other
// contexts measure the delay at the same time.
func (h *heldLease) observe() {
	defer close(h.observed)
	for {
		until := h.lease.ValidUntil()
		left := time.Until(until)
		if left > h.ttl {
			h.t.Errorf("%s is valid for %v, and its TTL is %v", h.hold.Holder, left, h.ttl)
			return
		}
		pause := min(left, h.ttl/20)
		due, timer := time.Now().Add(pause), time.NewTimer(pause)
		select {
		case <-h.released:
			timer.Stop()
			return
		case <-h.scenario.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		raise(h.lateness, time.Since(due))
		if time.Now().Before(until) || h.lease.ValidUntil().After(until) {
			continue
		}
		delay := time.Since(until)
		for h.lost.Load() == nil && time.Since(until) < patience {
			delay += measureDelay(controlTime)
		}
		lost := h.lost.Load()
		switch {
		case lost == nil:
			h.t.Errorf("%s was valid until %v ago, and its context has not ended", h.hold.Holder, time.Since(until))
		case lost.Sub(until) > delay+lateTolerance:
			h.t.Errorf("the context of %s ended %v late, and the delay of the machine was %v", h.hold.Holder, lost.Sub(until), delay)
		}
		return
	}
}

// longestDelay returns the longest delay of a timer in the scenario: a busy machine may
// have delayed any goroutine by as much.
func (s *scenario) longestDelay() time.Duration { return time.Duration(s.lateness.Load()) }

// raise sets longest to d if d is longer.
func raise(longest *atomic.Int64, d time.Duration) {
	for was := longest.Load(); int64(d) > was && !longest.CompareAndSwap(was, int64(d)); {
		was = longest.Load()
	}
}

// measureDelay returns how late a context with a deadline ends.
func measureDelay(after time.Duration) time.Duration {
	due, ended := time.Now().Add(after), make(chan time.Time, 1)
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()
	context.AfterFunc(ctx, func() { ended <- time.Now() })
	return max(0, (<-ended).Sub(due))
}

// release releases the lease, and reports whether it was kept until then.
func (h *heldLease) release(s *scenario) (kept bool) {
	s.t.Helper()
	ended := time.Now()
	until, ctx := h.lease.ValidUntil(), h.lease.Context()
	cause := context.Cause(ctx)
	close(h.released)
	suite.AwaitClosed(s.t, "the observation ends", h.observed)
	released := make(chan error, 1)
	go func() { released <- h.lease.Release(context.Background()) }()
	var err error
	select {
	case err = <-released:
	case <-time.After(patience):
		s.t.Errorf("%s: Release does not return", h.hold.Holder)
	}
	if cause != nil {
		suite.Eventually(s.t, "the end of the context is recorded", func() bool { return h.lost.Load() != nil })
		h.hold.Lost, ended = true, *h.lost.Load()
		if !errors.Is(cause, core.ErrLost) || !errors.Is(err, core.ErrLost) {
			s.t.Errorf("%s: ended by %v, released with %v", h.hold.Holder, cause, err)
		}
		if late := ended.Sub(until); late > 0 {
			s.figures.note("%s informed %v after its end", h.hold.Holder, late.Round(100*time.Microsecond))
		}
	} else if err != nil {
		h.hold.Lost = errors.Is(err, core.ErrLost)
		if !h.hold.Lost && !errors.Is(err, core.ErrUnavailable) {
			s.t.Errorf("%s: released with %v", h.hold.Holder, err)
		}
	}
	h.hold.Ended = min(s.history.At(ended), s.history.At(until))
	s.history.Add(h.hold)
	return !h.hold.Lost
}

package failover

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A heldLease is a lease under observation.
type heldLease struct {
	*history.Lease
	*scenario
	ttl         time.Duration
	isElsewhere bool          // its master does not fail
	released    chan struct{} // closed when the holder releases it
	observed    chan struct{} // closed when the observation has ended
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
	locks := p.locks.With(core.WithTTL(ttl), core.WithFencing(true), core.WithWait(patience))
	lease, err := s.history.Lock(s.ctx, locks, history.Op{Name: holder, Key: key})
	if err != nil {
		s.t.Fatalf("%s: %v", holder, err)
	}
	h := &heldLease{Lease: lease, scenario: s, ttl: ttl, released: make(chan struct{}), observed: make(chan struct{})}
	s.group.Go(h.observe)
	return h
}

// observe fails the test if the validity of the lease exceeds its TTL in Redis, or if the
// context does not end with the validity. Contexts end late on a busy machine, so other
// contexts measure the delay at the same time.
func (h *heldLease) observe() {
	defer close(h.observed)
	for {
		until := h.ValidUntil()
		left := time.Until(until)
		if left > h.ttl {
			h.t.Errorf("%s is valid for %v, and its TTL is %v", h.Name(), left, h.ttl)
			return
		}
		pause := min(left, h.ttl/20)
		due, timer := time.Now().Add(pause), time.NewTimer(pause)
		select {
		case <-h.released:
			timer.Stop()
			return
		case <-h.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		raise(&h.lateness, time.Since(due))
		if time.Now().Before(until) || h.ValidUntil().After(until) {
			continue
		}
		delay := time.Since(until)
		for h.LostAt().IsZero() && time.Since(until) < patience {
			delay += measureDelay(controlTime)
		}
		lost := h.LostAt()
		switch {
		case lost.IsZero():
			h.t.Errorf("%s was valid until %v ago, and its context has not ended", h.Name(), time.Since(until))
		case lost.Sub(until) > delay+lateTolerance:
			h.t.Errorf("the context of %s ended %v late, and the delay of the machine was %v", h.Name(), lost.Sub(until), delay)
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
func (h *heldLease) release() (kept bool) {
	h.t.Helper()
	until, cause := h.ValidUntil(), context.Cause(h.Context())
	close(h.released)
	suite.AwaitClosed(h.t, "the observation ends", h.observed)
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	var err error
	select {
	case err = <-released:
	case <-time.After(patience):
		h.t.Errorf("%s: Release does not return", h.Name())
	}
	isLost := errors.Is(err, core.ErrLost)
	switch {
	case cause != nil && (!isLost || !errors.Is(cause, core.ErrLost)), err != nil && !isLost && !errors.Is(err, core.ErrUnavailable):
		h.t.Errorf("%s: ended by %v, released with %v", h.Name(), cause, err)
	case cause != nil:
		if late := h.LostAt().Sub(until); late > 0 {
			h.figures.note("%s informed %v after its end", h.Name(), late.Round(100*time.Microsecond))
		}
	}
	return cause == nil && !isLost
}

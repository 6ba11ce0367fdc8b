package failover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

const (
	// longTTL is longer than a failover, even for a lease that is due for renewal when
	// the master fails. Leases are renewed after a third of their TTL.
	longTTL = 9 * time.Second
	// surelyOutlived is a failover that longTTL surely outlives. An election without a
	// winner takes longer.
	surelyOutlived = longTTL*2/3 - 2*time.Second
	// shortTTL is shorter than a failover.
	shortTTL = time.Second
	// elsewhereTTL ends before a Cluster replaces a master that does not answer, and has
	// room for a busy machine.
	elsewhereTTL = 2 * time.Second
)

// holders is the part of processes that hold a lock when the master fails. Another
// process waits for each of the locks.
type holders struct {
	*scenario
	process, other *process
	held           []*heldLease
	served         []chan struct{} // closed when the waiter was served
	oldSide        *heldLease      // of one lock, if there are two masters
	newSide        *heldLease
}

func (h *holders) start() {
	h.process, h.other = h.newProcess(0), h.newProcess(1)
	keys := h.keysAt(h.master, h.name+"-hold", 2)
	h.held = append(h.held,
		h.hold(h.process, "the long holder", keys[0], longTTL),
		h.hold(h.process, "the short holder", keys[1], shortTTL))
	for _, other := range h.others(h.master) {
		one := h.hold(h.process, "the holder at another master", h.keysAt(other, h.name+"-hold", 1)[0], elsewhereTTL)
		one.isElsewhere = true
		h.held = append(h.held, one)
	}
	for _, one := range h.held {
		key, done := one.Key(), make(chan struct{})
		h.served = append(h.served, done)
		h.group.Go(func() {
			defer close(done)
			h.turn(h.other, "the waiter after "+one.Name(), key)
		})
		suite.Eventually(h.t, "the next process waits", func() bool { return h.other.count(waiting, key) > 0 })
	}
}

// replaced makes two processes hold one lock if there are two masters.
func (h *holders) replaced() {
	if !h.failure.isSplit {
		return
	}
	key := h.name + "-both"
	h.oldSide = h.hold(newProcess(h.t, h.master.Client(h.t)), "the holder at the old master", key, shortTTL)
	h.newSide = h.hold(h.process, "the holder at the new master", key, shortTTL)
	for _, one := range []*heldLease{h.oldSide, h.newSide} {
		if err := one.Context().Err(); err != nil {
			h.t.Errorf("%s: %v", one.Name(), context.Cause(one.Context()))
		}
	}
}

func (h *holders) finish() {
	if h.failure.loss == all {
		long := h.held[0]
		suite.Eventually(h.t, "the holder of a lost key is informed", func() bool { return long.Context().Err() != nil })
		suite.AwaitClosed(h.t, "the waiter is served", h.served[0])
	}
	if h.failure.isSplit {
		suite.Eventually(h.t, "one of two holders is informed", func() bool { return h.oldSide.Context().Err() != nil })
		if h.oldSide.release() || !h.newSide.release() {
			h.t.Error("of two holders not the one at the old master was informed")
		}
	}
	kept := ""
	for i, one := range h.held {
		wasKept := one.release()
		switch {
		case one.isElsewhere && !wasKept && h.longestDelay() < elsewhereTTL/3:
			h.t.Errorf("%s lost its lock: %v", one.Name(), context.Cause(one.Context()))
		case one.ttl == longTTL && wasKept && h.failure.loss == all,
			one.ttl == longTTL && !wasKept && h.failure.loss == nothing && h.after(h.promotedAt) < surelyOutlived:
			h.t.Errorf("%s has kept its lock: %v", one.Name(), wasKept)
		}
		if i < 2 {
			kept += fmt.Sprintf("%s kept its lock: %v, ", one.Name(), wasKept)
		}
	}
	for _, done := range h.served {
		suite.AwaitClosed(h.t, "the waiter is served", done)
	}
	h.note("%s", kept[:len(kept)-2])
}

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
			h.note("%s informed %v after its end", h.Name(), late.Round(100*time.Microsecond))
		}
	}
	return cause == nil && !isLost
}

package failover

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A held is a lease that is looked after.
type held struct {
	t         *testing.T
	scene     context.Context
	lease     *core.Lease
	one       hold
	ttl       time.Duration
	elsewhere bool          // its master does not fail
	over      chan struct{} // closed when the holder gives it back
	told      atomic.Pointer[time.Time]
	late      *atomic.Int64 // of the scene
	watched   chan struct{} // closed when nobody looks any more
}

// How much later than a control somebody may be told, whose thread a busy machine
// keeps from running while that of the control runs, and how long a control lasts.
const (
	slack   = 250 * time.Millisecond
	control = 5 * time.Millisecond
)

// hold takes a lock and looks after it.
func (s *scene) hold(p *process, by, key string, ttl time.Duration) *held {
	s.t.Helper()
	lease, err := p.locks.With(core.WithTTL(ttl), core.WithFencing(true), core.WithWait(patience)).Lock(s.ctx, key)
	if err != nil {
		s.t.Fatalf("%s: %v", by, err)
	}
	h := &held{
		t: s.t, scene: s.ctx, lease: lease, ttl: ttl, over: make(chan struct{}), late: &s.late, watched: make(chan struct{}),
		one: hold{key: key, by: by, granted: time.Now(), fence: lease.Fence()},
	}
	context.AfterFunc(lease.Context(), func() {
		now := time.Now()
		h.told.Store(&now)
	})
	s.group.Go(h.watch)
	return h
}

// watch fails the test if the lease is ever believed in for longer than Redis keeps
// it, or if its validity is over and its holder is not told. A busy machine is late to tell anybody, so it is measured how late: by the ends of
// other contexts at the same time.
func (h *held) watch() {
	defer close(h.watched)
	for {
		until := h.lease.ValidUntil()
		left := time.Until(until)
		if left > h.ttl {
			h.t.Errorf("%s is valid for %v, and its time to live is %v", h.one.by, left, h.ttl)
			return
		}
		pause := min(left, h.ttl/20)
		due, timer := time.Now().Add(pause), time.NewTimer(pause)
		select {
		case <-h.over:
			timer.Stop()
			return
		case <-h.scene.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		noteLate(h.late, time.Since(due))
		if time.Now().Before(until) || h.lease.ValidUntil().After(until) {
			continue
		}
		busy := time.Since(until)
		for h.told.Load() == nil && time.Since(until) < patience {
			busy += lateness(control)
		}
		told := h.told.Load()
		switch {
		case told == nil:
			h.t.Errorf("%s was valid until %v ago, and is not told", h.one.by, time.Since(until))
		case told.Sub(until) > busy+slack:
			h.t.Errorf("%s was told %v after its end, and the machine was %v late", h.one.by, told.Sub(until), busy)
		}
		return
	}
}

// latest returns by how much those who look after leases were woken too late at most:
// for so long a busy machine may have kept everybody from running.
func (s *scene) latest() time.Duration { return time.Duration(s.late.Load()) }

// noteLate keeps the longest.
func noteLate(longest *atomic.Int64, late time.Duration) {
	for was := longest.Load(); int64(late) > was && !longest.CompareAndSwap(was, int64(late)); {
		was = longest.Load()
	}
}

// lateness returns by how much somebody is told too late of a context that ends by a
// timer.
func lateness(after time.Duration) time.Duration {
	due, told := time.Now().Add(after), make(chan time.Time, 1)
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()
	context.AfterFunc(ctx, func() { told <- time.Now() })
	return max(0, (<-told).Sub(due))
}

// end gives the lease back, and returns whether it was kept.
func (h *held) end(s *scene) (kept bool) {
	s.t.Helper()
	h.one.ended = time.Now()
	until, ctx := h.lease.ValidUntil(), h.lease.Context()
	cause := context.Cause(ctx)
	close(h.over)
	<-h.watched
	released := make(chan error, 1)
	go func() { released <- h.lease.Release(context.Background()) }()
	var err error
	select {
	case err = <-released:
	case <-time.After(patience):
		s.t.Errorf("%s: its release hangs", h.one.by)
	}
	if cause != nil {
		await(s.t, "the end of the context is seen", func() bool { return h.told.Load() != nil })
		h.one.told, h.one.ended = true, *h.told.Load()
		if !errors.Is(cause, core.ErrLost) || !errors.Is(err, core.ErrLost) {
			s.t.Errorf("%s: ended with %v, released with %v", h.one.by, cause, err)
		}
		if late := h.one.ended.Sub(until); late > 0 {
			s.figures.note("%s told %v after its end", h.one.by, late.Round(100*time.Microsecond))
		}
	} else if err != nil {
		h.one.told = errors.Is(err, core.ErrLost)
		if !h.one.told && !errors.Is(err, core.ErrUnavailable) {
			s.t.Errorf("%s: released with %v", h.one.by, err)
		}
	}
	if until.Before(h.one.ended) {
		h.one.ended = until
	}
	s.history.add(h.one)
	return !h.one.told
}

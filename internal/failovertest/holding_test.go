package failovertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

const (
	// longTTL outlives a failover, and so does a lease that was not renewed when
	// the master failed. A third of it is the time until the next renewal.
	longTTL = 9 * time.Second
	// shortTTL does not.
	shortTTL = time.Second
	// elsewhereTTL is over, too, before a master that does not answer is replaced in
	// a cluster, and has room for a busy machine.
	elsewhereTTL = 2 * time.Second
)

// holding is the part of those who hold a lock when the master fails. Another
// process waits for each.
type holding struct {
	*scene
	process, other *process
	held           []*held
	waited         []chan struct{}
	left, right    *held // of one lock, where there are two masters
}

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
	watched   chan struct{} // closed when nobody looks any more
}

// How late who is told too late may be on a machine that has time, and how long a
// control lasts.
const (
	slack   = 20 * time.Millisecond
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
		t: s.t, scene: s.ctx, lease: lease, ttl: ttl, over: make(chan struct{}), watched: make(chan struct{}),
		one: hold{key: key, by: by, granted: time.Now(), fence: lease.Fence()},
	}
	context.AfterFunc(lease.Context(), func() {
		now := time.Now()
		h.told.Store(&now)
	})
	s.group.Go(h.watch)
	return h
}

// watch fails the test if the lease's validity is over and its holder is not told.
// A busy machine is late to tell anybody, so it is measured how late: by the ends of
// other contexts at the same time.
func (h *held) watch() {
	defer close(h.watched)
	for {
		until := h.lease.ValidUntil()
		timer := time.NewTimer(time.Until(until))
		select {
		case <-h.over:
			timer.Stop()
			return
		case <-h.scene.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if h.lease.ValidUntil().After(until) {
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

func (h *holding) begin() {
	h.process, h.other = h.scene.process(0), h.scene.process(1)
	keys := h.keysAt(h.master, h.name+"-hold", 2)
	h.held = append(h.held,
		h.hold(h.process, "the long holder", keys[0], longTTL),
		h.hold(h.process, "the short holder", keys[1], shortTTL))
	for _, other := range h.others(h.master) {
		one := h.hold(h.process, "the holder elsewhere", h.keysAt(other, h.name+"-hold", 1)[0], elsewhereTTL)
		one.elsewhere = true
		h.held = append(h.held, one)
	}
	for _, one := range h.held {
		key, done := one.one.key, make(chan struct{})
		h.waited = append(h.waited, done)
		h.group.Go(func() {
			defer close(done)
			h.turn(h.other, "the next after "+one.one.by, key)
		})
		await(h.t, "the next one waits", func() bool { return h.other.told(waiting, key) > 0 })
	}
}

// turn waits for a lock and has it for a moment.
func (s *scene) turn(p *process, by, key string) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	lease, err := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true)).Lock(ctx, key)
	if err != nil {
		s.t.Errorf("%s on %s is stranded: %v", by, key, err)
		return
	}
	one := hold{key: key, by: by, granted: time.Now(), fence: lease.Fence()}
	time.Sleep(s.ledger.takes)
	one.ended = time.Now()
	if until := lease.ValidUntil(); until.Before(one.ended) {
		one.ended = until
	}
	err = lease.Release(ctx)
	one.told = errors.Is(err, core.ErrLost)
	if err != nil && !one.told && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", by, key, err)
	}
	s.history.add(one)
}

func (h *holding) poise() {}

// replace lets two processes hold one lock where there are two masters.
func (h *holding) replace() {
	if !h.failure.split {
		return
	}
	key := h.name + "-both"
	h.left = h.hold(newProcess(h.t, h.master.Client(h.t)), "the holder at the old master", key, shortTTL)
	h.right = h.hold(h.process, "the holder at the new master", key, shortTTL)
	for _, one := range []*held{h.left, h.right} {
		if err := one.lease.Context().Err(); err != nil {
			h.t.Errorf("%s: %v", one.one.by, context.Cause(one.lease.Context()))
		}
	}
}

func (h *holding) end() {
	if h.failure.loss == all {
		long := h.held[0]
		await(h.t, "who has lost the key is told", func() bool { return long.lease.Context().Err() != nil })
		awaitClosed(h.t, "the next one is served", h.waited[0])
	}
	if h.failure.split {
		await(h.t, "one of two holders is told", func() bool { return h.left.lease.Context().Err() != nil })
		if h.left.end(h.scene) || !h.right.end(h.scene) {
			h.t.Error("of two holders another one was told than that whose master went")
		}
	}
	kept := ""
	for i, one := range h.held {
		was := one.end(h.scene)
		switch {
		case one.elsewhere && !was:
			h.t.Errorf("%s was told: %v", one.one.by, context.Cause(one.lease.Context()))
		case one.ttl == longTTL && was == (h.failure.loss == all) && h.failure.loss != something:
			h.t.Errorf("%s has kept it: %v", one.one.by, was)
		}
		if i < 2 {
			kept += fmt.Sprintf("%s kept %v, ", one.one.by, was)
		}
	}
	for _, done := range h.waited {
		awaitClosed(h.t, "the next one is served", done)
	}
	h.figures.note("%s", kept[:len(kept)-2])
}

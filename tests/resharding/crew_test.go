package resharding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// leaseTTL is the life of the crew's leases: longer than a move mostly takes.
const leaseTTL = 2 * time.Second

// coolKeys is how many keys each slot has for which hardly anybody waits.
const coolKeys = 20

// A crew is processes whose callers want the keys of some slots.
type crew struct {
	t       *testing.T
	begun   time.Time
	tags    []string // of the slots' keys
	lockers []*core.Locker
	traffic traffic
	tally   tally

	stopped atomic.Bool
	group   sync.WaitGroup

	mu        sync.Mutex
	histories map[string]*history // by key
	requests  map[string]*request
}

// newCrew returns a crew of so many processes, each with a client of its own.
func newCrew(t *testing.T, cluster *redistest.Cluster, processes int, tags ...string) *crew {
	t.Helper()
	c := &crew{
		t: t, begun: time.Now(), tags: tags,
		histories: make(map[string]*history), requests: make(map[string]*request),
	}
	for range processes {
		rdb := cluster.Client(t)
		c.traffic.watch(rdb)
		c.lockers = append(c.lockers, newLocker(t, rdb, core.WithTTL(leaseTTL)))
	}
	return c
}

// now is the time in the histories; never 0.
func (c *crew) now() time.Duration { return time.Since(c.begun) + 1 }

// hot returns the key of a slot that everybody wants. Those of every other slot
// are fenced.
func (c *crew) hot(i int) (key string, fenced bool) { return c.tags[i] + "hot", i%2 == 0 }

// history returns that of a key.
func (c *crew) history(key string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.histories[key] == nil {
		c.histories[key] = &history{}
	}
	return c.histories[key]
}

// request returns that with a key.
func (c *crew) request(key string) *request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests[key] == nil {
		c.requests[key] = &request{}
	}
	return c.requests[key]
}

// start lets the callers go, until stop.
func (c *crew) start() {
	for p, locks := range c.lockers {
		for i, tag := range c.tags {
			key, fenced := c.hot(i)
			hot := locks.With(core.WithFencing(fenced))
			bounded, none := hot.With(core.WithWait(250*time.Millisecond)), hot.With(core.WithWait(0))
			for n := range 2 {
				c.keepOn(func() { c.stay(fmt.Sprintf("stayer %d.%d", p, n), hot, key, time.Millisecond) })
			}
			c.keepOn(func() { c.wait(fmt.Sprintf("waiter %d", p), bounded, key) })
			c.keepOn(func() { c.try(fmt.Sprintf("trier %d", p), none, key) })
			c.keepOn(func() { c.leave(fmt.Sprintf("leaver %d", p), hot, key) })
			c.keepOn(func() { c.stay(fmt.Sprintf("slow %d", p), locks, tag+"slow", leaseTTL*2/5) })
			c.keepOn(func() { c.pay(p, locks.With(core.WithWait(time.Minute)), tag) })
		}
		for range 3 {
			c.keepOn(func() {
				key := fmt.Sprintf("%scool%d", c.tags[rand.IntN(len(c.tags))], rand.IntN(coolKeys))
				c.stay(fmt.Sprintf("passer-by %d", p), locks, key, 0)
			})
		}
	}
}

// keepOn runs a call again and again until stop.
func (c *crew) keepOn(call func()) {
	c.group.Go(func() {
		for !c.stopped.Load() {
			call()
		}
	})
}

// stop returns when the calls under way have ended, which they must.
func (c *crew) stop() {
	c.stopped.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.group.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		c.check()
		c.t.Fatal("calls do not end")
	}
}

// unexpected fails the test with an error that should not be.
func (c *crew) unexpected(caller, key string, err error) {
	c.t.Errorf("%s of %s: %v", caller, key, err)
}

// turn is one turn on a key: granted is given a lease, or an error. A call that
// waits without end is in the history from its beginning.
func (c *crew) turn(
	ctx context.Context, caller string, locks *core.Locker, key string, endless bool, section time.Duration,
) error {
	one, h := &hold{caller: caller, asked: c.now()}, c.history(key)
	if endless {
		h.add(one)
	}
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	h.mu.Lock()
	one.granted, one.fence = c.now(), lease.Fence()
	h.mu.Unlock()
	if section > 0 {
		timer := time.NewTimer(section)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-lease.Context().Done():
		}
	}
	ended := min(c.now(), lease.ValidUntil().Sub(c.begun))
	err = lease.Release(context.WithoutCancel(ctx))
	h.mu.Lock()
	one.ended = ended
	h.mu.Unlock()
	if !endless {
		h.add(one)
	}
	switch {
	case err == nil:
	case errors.Is(err, core.ErrLost):
		c.tally.lost.Add(1)
	case errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed):
		c.tally.unreleased.Add(1)
	default:
		c.unexpected("release by "+caller, key, err)
	}
	return nil
}

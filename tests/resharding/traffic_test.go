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
	"github.com/reqlock/reqlock/tests/internal/history"
)

// leaseTTL is the TTL of the leases under load: longer than a move mostly takes.
const leaseTTL = 2 * time.Second

// coolKeys is how many keys with few waiters each slot has.
const coolKeys = 20

// A load is processes whose callers lock the keys of some slots.
type load struct {
	t         *testing.T
	started   time.Time
	tags      []string // hash tags, one for each slot
	lockers   []*core.Locker
	redirects redirects
	outcomes  outcomes

	isStopped atomic.Bool
	group     sync.WaitGroup

	mu        sync.Mutex
	histories map[string]*history.Recorder // by key
	requests  map[string]*request
}

// newLoad returns a load of processes, each with a client of its own.
func newLoad(t *testing.T, cluster *redistest.Cluster, processes int, tags ...string) *load {
	t.Helper()
	l := &load{
		t: t, started: time.Now(), tags: tags,
		histories: make(map[string]*history.Recorder), requests: make(map[string]*request),
	}
	for range processes {
		rdb := cluster.Client(t)
		l.redirects.watch(rdb)
		l.lockers = append(l.lockers, newLocker(t, rdb, core.WithTTL(leaseTTL)))
	}
	return l
}

// now is the time since the start.
func (l *load) now() time.Duration { return time.Since(l.started) }

// hotKey returns the key of a slot that all callers use. Half of these keys are fenced.
func (l *load) hotKey(i int) (key string, isFenced bool) { return l.tags[i] + "hot", i%2 == 0 }

// history returns the holds of a key.
func (l *load) history(key string) *history.Recorder {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.histories[key] == nil {
		l.histories[key] = history.NewRecorder()
	}
	return l.histories[key]
}

// request returns the idempotent request with a key.
func (l *load) request(key string) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[key] == nil {
		l.requests[key] = &request{}
	}
	return l.requests[key]
}

// start starts the callers, which run until stop.
func (l *load) start() {
	for p, locks := range l.lockers {
		for i, tag := range l.tags {
			key, isFenced := l.hotKey(i)
			hot := locks.With(core.WithFencing(isFenced))
			bounded, nowait := hot.With(core.WithWait(250*time.Millisecond)), hot.With(core.WithWait(0))
			for n := range 2 {
				l.repeat(func() { l.lockEndlessly(fmt.Sprintf("endless waiter %d.%d", p, n), hot, key, time.Millisecond) })
			}
			l.repeat(func() { l.lockInTime(fmt.Sprintf("bounded waiter %d", p), bounded, key) })
			l.repeat(func() { l.lockOrFail(fmt.Sprintf("nowait caller %d", p), nowait, key) })
			l.repeat(func() { l.lockAndCancel(fmt.Sprintf("cancelling caller %d", p), hot, key) })
			l.repeat(func() { l.lockEndlessly(fmt.Sprintf("slow holder %d", p), locks, tag+"slow", leaseTTL*2/5) })
			l.repeat(func() { l.sendRequest(p, locks.With(core.WithWait(time.Minute)), tag) })
		}
		for range 3 {
			l.repeat(func() {
				key := fmt.Sprintf("%scool%d", l.tags[rand.IntN(len(l.tags))], rand.IntN(coolKeys))
				l.lockEndlessly(fmt.Sprintf("caller %d of a cool key", p), locks, key, 0)
			})
		}
	}
}

// repeat calls a function again and again until stop.
func (l *load) repeat(call func()) {
	l.group.Go(func() {
		for !l.isStopped.Load() {
			call()
		}
	})
}

// stop returns when all calls have returned. It fails the test if they do not.
func (l *load) stop() {
	l.isStopped.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.group.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		l.check()
		l.t.Fatal("calls do not return")
	}
}

// unexpected fails the test with an error that must not occur.
func (l *load) unexpected(caller, key string, err error) {
	l.t.Errorf("%s of %s: %v", caller, key, err)
}

// turn is one turn on a key. A call that waits without a limit is in the history from
// its start, so that a call that is never served is found.
func (l *load) turn(
	ctx context.Context, caller string, locks *core.Locker, key string, isEndless bool, section time.Duration,
) error {
	h := l.history(key)
	one := &history.Hold{Key: key, Holder: caller, Asked: h.Now()}
	if isEndless {
		h.Add(one)
	}
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	h.Update(func() { one.Granted, one.Fence = h.Now(), lease.Fence() })
	if section > 0 {
		timer := time.NewTimer(section)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-lease.Context().Done():
		}
	}
	ended := min(h.Now(), h.At(lease.ValidUntil()))
	err = lease.Release(context.WithoutCancel(ctx))
	h.Update(func() { one.Ended = ended })
	if !isEndless {
		h.Add(one)
	}
	switch {
	case err == nil:
	case errors.Is(err, core.ErrLost):
		l.outcomes.lost.Add(1)
	case errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed):
		l.outcomes.unreleased.Add(1)
	default:
		l.unexpected("release by "+caller, key, err)
	}
	return nil
}

// check fails the test with each violation that the callers saw.
func (l *load) check() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	isFenced := make(map[string]bool)
	for i := range l.tags {
		key, is := l.hotKey(i)
		isFenced[key] = is
	}
	for key, recorder := range l.histories {
		holds := recorder.Holds()
		found := append(holds.Exclusion(), holds.Service(recorder.Now())...)
		if isFenced[key] {
			found = append(found, holds.Fences()...)
		}
		for _, violation := range found {
			l.t.Error(violation)
		}
	}
	for key, r := range l.requests {
		for _, violation := range r.violations() {
			l.t.Errorf("%s: %s", key, violation)
		}
	}
}

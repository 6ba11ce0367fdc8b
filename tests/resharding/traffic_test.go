package resharding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/internal/clock"
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
	history   *history.Recorder

	isStopped atomic.Bool
	group     sync.WaitGroup
}

// newLoad returns a load of processes, each with a client of its own.
func newLoad(t *testing.T, cluster *redistest.Cluster, processes int, tags ...string) *load {
	t.Helper()
	l := &load{t: t, started: time.Now(), tags: tags, history: history.NewRecorder()}
	for range processes {
		rdb := cluster.Client(t)
		l.redirects.watch(rdb)
		l.lockers = append(l.lockers, newLocker(t, rdb, core.WithTTL(leaseTTL)))
	}
	return l
}

// hotKey returns the key of a slot that all callers use. Half of these keys are fenced.
func (l *load) hotKey(i int) (key string, isFenced bool) { return l.tags[i] + "hot", i%2 == 0 }

// isFenced reports whether a key is a fenced hot key.
func (l *load) isFenced(key string) bool {
	for i := range l.tags {
		if hot, isFenced := l.hotKey(i); hot == key {
			return isFenced
		}
	}
	return false
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

// turn is one turn on a key. The call is in the history from its start, so that a call that is
// never served is found.
func (l *load) turn(ctx context.Context, caller string, locks *core.Locker, key string, section time.Duration) error {
	lease, err := l.history.Lock(ctx, locks, history.Op{Name: caller, Key: key, Unfenced: !l.isFenced(key)})
	if err != nil {
		return err
	}
	if section > 0 {
		timer := time.NewTimer(section)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-lease.Context().Done():
		}
	}
	l.want("release by "+caller, key, lease.Release(context.WithoutCancel(ctx)), history.Lost, history.Unavailable)
	return nil
}

// check fails the test with each violation that the callers saw.
func (l *load) check() {
	l.t.Helper()
	h := l.history.History()
	holds := h.Holds()
	history.Report(l.t, h, map[string][]string{
		"exclusion": holds.Exclusion(), "service": holds.Service(time.Duration(clock.Now())), "fences": holds.Fences(), "requests": requests(h),
	})
	outcomes := map[string]int{}
	for _, op := range h.Ops {
		outcomes[string(op.Kind)+" "+string(op.Outcome)]++
	}
	l.t.Logf("calls: %v", outcomes)
}

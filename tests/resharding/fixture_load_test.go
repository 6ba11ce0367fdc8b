package resharding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
	tryAgains tryAgains
	history   *history.Recorder

	isStopped atomic.Bool
	group     sync.WaitGroup
}

func newLoad(t *testing.T, cluster *redistest.Cluster, processes int, tags ...string) *load {
	t.Helper()
	l := &load{t: t, started: time.Now(), tags: tags, history: history.NewRecorder()}
	for range processes {
		rdb := cluster.Client(t)
		rdb.OnNewNode(func(node *redis.Client) { node.AddHook(&l.tryAgains) })
		l.lockers = append(l.lockers, newLocker(t, rdb, core.WithTTL(leaseTTL)))
	}
	return l
}

func (l *load) hotKey(i int) (key string, isFenced bool) { return l.tags[i] + "hot", i%2 == 0 }

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

// pause is the pause of a caller after an immediate refusal.
const pause = 10 * time.Millisecond

// lockEndlessly waits without a limit, so it is always served.
func (l *load) lockEndlessly(caller string, locks *core.Locker, key string, section time.Duration) {
	l.want(caller, key, l.turn(l.t.Context(), caller, locks, key, section))
}

func (l *load) lockInTime(caller string, locks *core.Locker, key string) {
	err := l.turn(l.t.Context(), caller, locks, key, 0)
	if l.want(caller, key, err, history.WaitTimeout, history.Unavailable) == history.Unavailable {
		time.Sleep(pause)
	}
}

// lockOrFail does not wait.
func (l *load) lockOrFail(caller string, locks *core.Locker, key string) {
	l.want(caller, key, l.turn(l.t.Context(), caller, locks, key, 0), history.Busy, history.Unavailable)
	time.Sleep(pause)
}

func (l *load) lockAndCancel(caller string, locks *core.Locker, key string) {
	ctx, cancel := context.WithTimeout(l.t.Context(), rand.N(60*time.Millisecond))
	defer cancel()
	err := l.turn(ctx, caller, locks, key, 0)
	l.want(caller, key, err, history.Deadline)
	if err != nil && errors.Is(err, core.ErrWaitTimeout) == errors.Is(err, core.ErrUnavailable) {
		l.t.Errorf("%s of %s: neither busy nor unavailable: %v", caller, key, err)
	}
}

// want fails the test with an error that is none of these outcomes, and returns the outcome.
func (l *load) want(caller, key string, err error, allowed ...history.Outcome) history.Outcome {
	outcome := history.OutcomeOf(err, history.Done)
	if outcome != history.Done && !slices.Contains(allowed, outcome) {
		l.t.Errorf("%s of %s: %v", caller, key, err)
	}
	return outcome
}

// requestPeriod is how long all processes send the same idempotent request.
const requestPeriod = 100 * time.Millisecond

func (l *load) sendRequest(process int, locks *core.Locker, tag string) {
	key := fmt.Sprintf("%srequest%d", tag, time.Since(l.started)/requestPeriod)
	caller := fmt.Sprintf("client %d", process)
	begin := l.history.Begin(history.Op{Process: process, Kind: history.Begin, Key: key})
	attempt, err := locks.Begin(l.t.Context(), key, []byte("payload"))
	if err != nil {
		l.history.End(begin, l.want(caller, key, err, history.Interrupted), nil)
		time.Sleep(pause)
		return
	}
	if answer, done := attempt.Replay(); done {
		l.history.End(begin, history.Replayed, func(op *history.Op) { op.Record = string(answer) })
		time.Sleep(pause)
		return
	}
	token, answer := attempt.Lease().Token(), fmt.Sprintf("done by %s in request %d", caller, begin.Call)
	l.history.Effect(history.Effect{Process: process, ID: answer, Key: key, Number: attempt.Number(), Lease: token})
	l.history.End(begin, history.Granted, func(op *history.Op) {
		op.Lease, op.Number, op.Record = token, attempt.Number(), answer
	})
	isLost := attempt.Lease().Context().Err() != nil
	commit := l.history.Begin(history.Op{Process: process, Kind: history.Commit, Key: key, Lease: token, Record: answer})
	outcome := l.want("commit by "+caller, key, attempt.Commit(l.t.Context(), []byte(answer)), history.Unavailable)
	if isLost { // the answer may not be stored
		outcome = history.Lost
	}
	l.history.End(commit, outcome, nil)
}

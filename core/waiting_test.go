package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// crowd waits for a key with so many callers and returns once all of them
// stand in line. wait returns once all of them had their turn.
func crowd(t *testing.T, locks *core.Locker, heard *events, key string, n int) (wait func()) {
	t.Helper()
	before := len(heard.of(core.Waiting))
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if err := locks.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
				t.Errorf("waiter: %v", err)
			}
		})
	}
	await(t, "all wait", func() bool { return len(heard.of(core.Waiting)) == before+n })
	return group.Wait
}

func aLineThatIsFullRefusesAtOnce(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	heard := &events{}
	locks := newLocker(t, rdb, core.WithObserver(heard.observe), core.WithMaxWaiters(3), core.WithMaxTotalWaiters(4))
	holder := newLocker(t, rdb)
	a, b := lock(t, holder, "a"), lock(t, holder, "b")
	wait := crowd(t, locks, heard, "a", 3)

	_, err := locks.Lock(t.Context(), "a")
	wantError(t, err, core.ErrQueueFull)
	if o, ok := core.OutcomeOf(err); !ok || o.HTTP != 429 || o.RetryAfter != time.Second {
		t.Errorf("outcome %+v", o)
	}
	waitB := crowd(t, locks, heard, "b", 1)
	_, err = locks.Lock(t.Context(), "b")
	wantError(t, err, core.ErrOverloaded)
	if o, ok := core.OutcomeOf(err); !ok || o.HTTP != 503 || o.RetryAfter != time.Second {
		t.Errorf("outcome %+v", o)
	}
	_, err = locks.TryLock(t.Context(), "b")
	wantError(t, err, core.ErrBusy)
	release(t, lock(t, locks, "free"))

	release(t, a)
	release(t, b)
	wait()
	waitB()
	release(t, lock(t, locks, "a"))
}

func aLockIsHandedFromProcessToProcess(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb, holders := servers.Client(t), newLocker(t, servers.Client(t))
	heard := &events{}
	locks := newLocker(t, servers.Client(t), core.WithObserver(heard.observe))
	const turns = 5
	handed := 0
	var took []time.Duration
	// A waiter also looks by itself, each second, and finds the key where the machine
	// is late with the hand-off. It is not so in most turns.
	for range turns {
		holder := lock(t, holders, "k")
		wait := crowd(t, locks, heard, "k", 1)
		await(t, "it stands in line", func() bool { return rdb.LLen(t.Context(), "{reqlock:k}:q").Val() == 1 })
		released := time.Now()
		release(t, holder)
		wait()
		took = append(took, time.Since(released))
		acquired := heard.of(core.Acquired)
		if len(acquired) != len(took) {
			t.Fatalf("acquired: %+v", acquired)
		}
		if took[len(took)-1] < 900*time.Millisecond && acquired[len(took)-1].Handover == core.Handed {
			handed++
		}
	}
	if handed <= turns/2 {
		t.Errorf("served after %v, %d of %d times by the hand-off, else by its timer: %+v", took, handed, turns, heard.of(core.Acquired))
	}
}

func fencesRiseWhateverHappensToTheirCounter(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	lockers := []*core.Locker{
		newLocker(t, servers.Client(t), core.WithFencing(true)),
		newLocker(t, servers.Client(t), core.WithFencing(true)),
	}
	var last int64
	turn := func(locks *core.Locker) {
		t.Helper()
		lease := lock(t, locks, "k")
		if lease.Fence() <= last {
			t.Errorf("fence %d after %d", lease.Fence(), last)
		}
		last = lease.Fence()
		release(t, lease)
	}
	for _, lose := range []func(){
		func() {},
		func() { rdb.Del(t.Context(), "{reqlock:k}:f") },
		func() { loseAll(t, rdb) },
		func() { rdb.ScriptFlush(t.Context()) },
	} {
		lose()
		for _, locks := range lockers {
			turn(locks)
			turn(locks)
		}
	}
	if life := rdb.PTTL(t.Context(), "{reqlock:k}:f").Val(); life < 6*24*time.Hour {
		t.Errorf("the counter lives for %v", life)
	}
}

func withoutFencingNoFencingWorkIsDone(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := newLocker(t, rdb)
	lease := lock(t, locks, "k")
	if lease.Fence() != 0 || rdb.Exists(t.Context(), "{reqlock:k}:f").Val() != 0 {
		t.Errorf("fence %d", lease.Fence())
	}
	release(t, lease)
	var none *core.Lease
	if none.Fence() != 0 {
		t.Error("a nil lease has a fence")
	}
	fenced := lock(t, locks.With(core.WithFencing(true)), "k")
	if fenced.Fence() == 0 {
		t.Error("a view with fencing has none")
	}
	release(t, fenced)
}

// The subscription lives for those who wait, and no longer than the Locker.
func TestCloseEndsTheSubscription(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	holder := lock(t, newLocker(t, server.Client(t)), "k")
	heard := &events{}
	locks := newLocker(t, server.Client(t), core.WithObserver(heard.observe))
	channels := func() int { return len(rdb.PubSubChannels(t.Context(), "*").Val()) }
	if channels() != 0 {
		t.Error("listens although nobody waits")
	}
	refused := make(chan error, 1)
	go func() {
		_, err := locks.Lock(t.Context(), "k")
		refused <- err
	}()
	await(t, "it listens", func() bool { return channels() == 1 })
	await(t, "it waits", func() bool { return rdb.LLen(t.Context(), "{reqlock:k}:q").Val() == 1 })
	if err := locks.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	wantError(t, <-refused, core.ErrClosed)
	await(t, "nobody listens", func() bool { return channels() == 0 })
	if n := rdb.LLen(t.Context(), "{reqlock:k}:q").Val(); n != 0 {
		t.Errorf("%d in line after close", n)
	}
	release(t, holder)
}

// Where nothing can be subscribed to, waiters live by their timers.
//
//faults:row 27: no message ever comes
func TestWithoutPubSubWaitersAreServedAllTheSame(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	for _, rule := range [][]any{
		{"ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "-subscribe", "-publish", "resetchannels"},
	} {
		if err := admin.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	deaf := func(o *redis.Options) { o.Username, o.Password = "deaf", "secret" }
	heard := &events{}
	locks := newLocker(t, server.Client(t, deaf), core.WithObserver(heard.observe))
	holder := lock(t, newLocker(t, server.Client(t, deaf)), "k")
	wait := crowd(t, locks, heard, "k", 3)
	release(t, holder)
	wait()
}

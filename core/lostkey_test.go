package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Redis forgets a key that is held, and another holder gets it. The first one is
// told at its next renewal, does nothing to the other's key, and has a number that
// a resource can tell from the other's.
//
//faults:row 9: a release after the loss
//faults:row 15 emulated: PEXPIRE 1 stands for a server's clock that jumps forward
//faults:row 16 loss
//faults:row 24 loss: a real server evicts the lock, with two policies
//faults:row 26 loss: DEL, FLUSHALL, and a value that somebody else has written
func TestAHolderWhoseKeyIsGoneIsTold(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // renewed after 2 s
	lost := map[string]func(t *testing.T, server *redistest.Server, admin *redis.Client) (mend func()){
		"the server restarts without its data": func(_ *testing.T, server *redistest.Server, _ *redis.Client) func() {
			server.Restart()
			return func() {}
		},
		"the server is emptied": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			t.Helper()
			return do(t, admin, "FLUSHALL")
		},
		"somebody deletes the key": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			t.Helper()
			return do(t, admin, "DEL", "reqlock:k")
		},
		"somebody writes over the key": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			t.Helper()
			return do(t, admin, "SET", "reqlock:k", "foreign", "PX", 100)
		},
		"the server's clock jumps forward": func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
			t.Helper()
			return do(t, admin, "PEXPIRE", "reqlock:k", 1)
		},
		"volatile-ttl evicts the key": evicts("volatile-ttl"),
		"allkeys-lru evicts the key":  evicts("allkeys-lru"),
	}
	for name, lose := range lost {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			heard := &events{}
			first := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithFencing(true), core.WithObserver(heard.observe)), "k")
			lose(t, server, server.Client(t))()
			second := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithFencing(true)), "k")
			if second.Fence() <= first.Fence() {
				t.Errorf("fence %d after %d", second.Fence(), first.Fence())
			}
			<-first.Context().Done()
			wantError(t, context.Cause(first.Context()), core.ErrLost)
			await(t, "the observer is told", func() bool { return len(heard.of(core.Lost)) == 1 })
			wantError(t, first.Release(t.Context()), core.ErrLost)
			if holder := server.Client(t).Get(t.Context(), "reqlock:k").Val(); holder != second.Token() {
				t.Errorf("the first holder's release has left %q in the key", holder)
			}
			release(t, second)
		})
	}
}

// do sends a command. There is nothing to mend then.
func do(t *testing.T, admin *redis.Client, command ...any) (mend func()) {
	t.Helper()
	if err := admin.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	return func() {}
}

// evicts returns what fills a server until it has evicted the lock by a policy,
// and what gives it room again.
func evicts(policy string) func(*testing.T, *redistest.Server, *redis.Client) func() {
	return func(t *testing.T, _ *redistest.Server, admin *redis.Client) func() {
		t.Helper()
		configured("maxmemory-policy", policy)(t, admin)
		configured("maxmemory", "4mb")(t, admin)
		filler := strings.Repeat("x", 4096)
		for i := 0; admin.Exists(t.Context(), "reqlock:k").Val() == 1; i++ {
			if i == 100_000 {
				t.Fatal("the lock is not evicted")
			}
			// Where nothing is left that may be evicted, the server says OOM.
			_ = admin.Set(t.Context(), "filler:"+time.Duration(i).String(), filler, 0).Err()
		}
		return func() { configured("maxmemory", "0")(t, admin) }
	}
}

// A server whose clock falls back keeps keys for longer, and renewals never shorten
// their lives. A holder that lives keeps its lease all the same, and frees the key.
//
//faults:row 15 emulated: PEXPIRE by an hour stands for a server's clock that falls back
func TestAServersClockThatFallsBackKeepsNoReleasedKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	heard := &events{}
	const ttl = 3 * time.Second
	lease := lock(t, newLocker(t, server.Client(t), core.WithTTL(ttl), core.WithObserver(heard.observe)), "k")
	do(t, admin, "PEXPIRE", "reqlock:k", time.Hour.Milliseconds())
	await(t, "it is renewed", func() bool { return len(heard.of(core.Renewed)) > 0 })
	if left := time.Until(lease.ValidUntil()); left > ttl || lease.Context().Err() != nil {
		t.Errorf("by the holder's clock it is valid for %v", left)
	}
	release(t, lease)
	if admin.Exists(t.Context(), "reqlock:k").Val() != 0 {
		t.Error("the key is left")
	}
}

// Validity has a reading of the monotonic clock, however the lease came about or
// was extended: a wall clock that is set moves it nowhere.
//
//faults:row 15: the wall clock of a client
func TestValidityIsThatOfAMonotonicClock(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	heard := &events{}
	locks := newLocker(t, rdb, core.WithTTL(3*time.Second), core.WithObserver(heard.observe))
	wantMonotonic := func(what string, lease *core.Lease) {
		t.Helper()
		until := lease.ValidUntil()
		if until == until.Round(0) { //nolint:staticcheck // Equal does not see the reading
			t.Errorf("%s: %v has no reading of the monotonic clock", what, until)
		}
	}
	lease := lock(t, locks, "k")
	wantMonotonic("taken", lease)
	await(t, "it is renewed", func() bool { return len(heard.of(core.Renewed)) > 0 })
	wantMonotonic("renewed", lease)
	if err := lease.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	wantMonotonic("extended", lease)
	passed := make(chan *core.Lease, 1)
	go func() {
		next, _ := locks.Lock(t.Context(), "k")
		passed <- next
	}()
	await(t, "one waits", func() bool { return len(heard.of(core.Waiting)) == 1 })
	release(t, lease)
	next := <-passed
	wantMonotonic("passed on", next)
	release(t, next)
}

package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// actions are what ends leases.
func actions(i *inspect.Inspector) map[string]func(lock inspect.Lock, t *testing.T) error {
	return map[string]func(lock inspect.Lock, t *testing.T) error{
		"revoke":   func(lock inspect.Lock, t *testing.T) error { t.Helper(); return i.Revoke(t.Context(), lock) },
		"free now": func(lock inspect.Lock, t *testing.T) error { t.Helper(); return i.FreeNow(t.Context(), lock) },
	}
}

func TestRevokeTellsTheHolderBeforeTheNextOneGetsIn(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		ttl := core.WithTTL(2 * time.Second)
		one, other, i := newLocker(t, rdb, ttl), newLocker(t, rdb, ttl), newInspector(t, rdb)
		for range suite.Size(1, 10) {
			lease := must(one.Lock(t.Context(), "k"))(t)
			next := wait(t, i, other, "k")
			if err := i.Revoke(t.Context(), must(i.Lock(t.Context(), "k"))(t)); err != nil {
				t.Fatal(err)
			}
			if lock := must(i.Lock(t.Context(), "k"))(t); lock.Holders[0].Kind != inspect.HolderRevoked || lock.Holders[0].LeaseLeft <= 0 || lock.Waiting != 1 {
				t.Errorf("after the revoke: %+v", lock)
			}
			<-lease.Context().Done()
			got := <-next
			wantError(t, lease.Release(t.Context()), core.ErrLost)
			if err := got.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAStaleLockIsRefused(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb), newInspector(t, rdb)
	for name, act := range actions(i) {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // they share a key
			seen := holdAndRelease(t, i, locks)
			wantError(t, act(seen, t), inspect.ErrChanged)
			lease := must(locks.Lock(t.Context(), "k"))(t)
			wantError(t, act(seen, t), inspect.ErrChanged)
			if err := lease.Context().Err(); err != nil {
				t.Errorf("the newer holder has lost its lease: %v", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// holdAndRelease returns a Lock of a lease that has ended since.
func holdAndRelease(t *testing.T, i *inspect.Inspector, locks *core.Locker) inspect.Lock {
	t.Helper()
	lease := must(locks.Lock(t.Context(), "k"))(t)
	seen := must(i.Lock(t.Context(), "k"))(t)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestOfTwoOperatorsOneIsRefused(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb), newInspector(t, rdb)
	for range 10 {
		lease := must(locks.Lock(t.Context(), "k"))(t)
		seen := must(i.Lock(t.Context(), "k"))(t)
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- i.Revoke(t.Context(), seen) }()
		}
		first, second := <-results, <-results
		if (first == nil) == (second == nil) {
			t.Fatalf("%v and %v", first, second)
		}
		wantError(t, errors.Join(first, second), inspect.ErrChanged)
		// An operator who knows that the holder is dead need not wait for the end of the tombstone.
		if err := i.FreeNow(t.Context(), must(i.Lock(t.Context(), "k"))(t)); err != nil {
			t.Fatal(err)
		}
		_, err := i.Lock(t.Context(), "k")
		wantError(t, err, inspect.ErrNotFound)
		wantError(t, lease.Release(t.Context()), core.ErrLost)
	}
}

func TestOnePermitOfSeveralEnds(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	ttl := core.WithTTL(time.Second)
	one, other, i := newLocker(t, rdb, ttl, core.WithPermits(2)), newLocker(t, rdb, ttl, core.WithPermits(2)), newInspector(t, rdb)
	for name, act := range actions(i) {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // they share a key
			kept, ended := must(one.Lock(t.Context(), "k"))(t), must(other.Lock(t.Context(), "k"))(t)
			seen := must(i.Lock(t.Context(), "k"))(t)
			if seen.Holders[0].Process != processOf(ended) {
				seen.Holders[0], seen.Holders[1] = seen.Holders[1], seen.Holders[0]
			}
			seen.Holders = seen.Holders[:1]
			if err := act(seen, t); err != nil {
				t.Fatal(err)
			}
			_, busy := one.TryLock(t.Context(), "k")
			if name == "revoke" {
				wantError(t, busy, core.ErrBusy) // the room stays taken
			} else if busy != nil {
				t.Error(busy)
			}
			<-ended.Context().Done()
			if err := kept.Release(t.Context()); err != nil {
				t.Errorf("the other permit: %v", err)
			}
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestLeasesThatAreNotEnded(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb), newInspector(t, rdb)
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	must(locks.Begin(t.Context(), "half }", nil))(t) // Redis has only a digest of the key
	foreigners(t, rdb)
	least := must(locks.With(core.WithMinHold(time.Minute)).Lock(t.Context(), "kept"))(t)
	if err := least.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), "reqlock:forever", least.Token(), 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, act := range actions(i) {
		for key, want := range map[string]error{
			"i:pay": inspect.ErrAttempt, "i:half }": inspect.ErrAttempt, "theirs": inspect.ErrForeign, "<script>alert(1)</script>": inspect.ErrForeign, "kept": inspect.ErrForeign,
			"forever": map[string]error{"revoke": inspect.ErrForeign}[name], // a dead process and a server that has lost the TTL
		} {
			wantError(t, act(must(i.Lock(t.Context(), key))(t), t), want)
		}
		free := must(i.Lock(t.Context(), "kept"))(t)
		free.Holders = nil
		wantError(t, act(free, t), inspect.ErrNotFound)
		if err := act(inspect.Lock{}, t); err == nil {
			t.Errorf("%s of an empty Lock", name)
		}
		if err := rdb.SetNX(t.Context(), "reqlock:forever", least.Token(), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := attempt.Lease().Context().Err(); err != nil {
		t.Error(err)
	}
}

func TestAnActionWithoutAReplyIsUnavailable(t *testing.T) {
	t.Parallel()
	server := start(t)
	rdb := server.Client(t)
	i := newInspector(t, server.Client(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 }))
	if err := rdb.Set(t.Context(), "reqlock:k", strings.Repeat("a", 32)+":1", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	seen := must(i.Lock(t.Context(), "k"))(t)
	server.Kill()
	for name, act := range actions(i) {
		if err := act(seen, t); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := i.Locks(t.Context(), inspect.Filter{})
	wantError(t, err, core.ErrUnavailable)
	_, err = i.Record(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
}

// A lock that has lost its TTL since it was seen never ends by itself, so Revoke would lock it for ever.
func TestRevokeRefusesALockThatHasLostItsTTL(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	i := newInspector(t, rdb)
	if err := rdb.Set(t.Context(), "reqlock:k", strings.Repeat("a", 32)+":1", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	lock := must(i.Lock(t.Context(), "k"))(t)
	if err := rdb.Persist(t.Context(), "reqlock:k").Err(); err != nil {
		t.Fatal(err)
	}
	wantError(t, i.Revoke(t.Context(), lock), inspect.ErrForeign)
}

package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// compareAndDelete is the classic release script, as clients in other languages
// send it.
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

func testOneOfNineGetsTheLock(t *testing.T, servers *deployment) {
	t.Helper()
	one := servers.newLocker(t, servers.Client(t))
	for name, locker := range map[string]func(*testing.T) *core.Locker{
		"one process": func(*testing.T) *core.Locker { return one },
		"nine processes": func(t *testing.T) *core.Locker {
			t.Helper()
			return servers.newLocker(t, servers.Client(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var granted, busy atomic.Int32
			var group sync.WaitGroup
			start := make(chan struct{})
			for range 9 {
				locks := locker(t)
				group.Go(func() {
					<-start
					switch _, err := locks.TryLock(t.Context(), name); {
					case err == nil:
						granted.Add(1)
					case errors.Is(err, core.ErrBusy) && !errors.Is(err, core.ErrWaitTimeout):
						busy.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			close(start)
			group.Wait()
			if granted.Load() != 1 || busy.Load() != 8 {
				t.Errorf("%d requests were granted and %d were busy, want 1 and 8", granted.Load(), busy.Load())
			}
		})
	}
}

func testWaitersOfSeveralProcesses(t *testing.T, servers *deployment) {
	t.Helper()
	var processes []*core.Locker
	for range 4 {
		processes = append(processes, servers.newLocker(t, servers.Client(t)))
	}
	takeTurns(t, processes, 8, suite.Size(5, 10))
}

// takeTurns runs a number of callers in each process. Each caller locks one key once for each
// turn. It fails the test if a call fails, or if two callers hold the lock at once.
func takeTurns(t *testing.T, processes []*core.Locker, callers, turns int) {
	t.Helper()
	var inside, done atomic.Int32
	var group sync.WaitGroup
	for _, locks := range processes {
		for range callers {
			group.Go(func() {
				for range turns {
					err := locks.Do(t.Context(), "k", func(context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two holders at once")
						}
						time.Sleep(100 * time.Microsecond)
						inside.Add(-1)
						done.Add(1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	if want := len(processes) * callers * turns; int(done.Load()) != want {
		t.Errorf("%d turns done, want %d", done.Load(), want)
	}
}

func TestReleaseByAnotherTokenFreesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	lease := lock(t, newLocker(t, rdb), "k")
	if freed := rdb.Eval(t.Context(), compareAndDelete, []string{"reqlock:k"}, "another").Val(); freed != int64(0) {
		t.Errorf("freed %v", freed)
	}
	other := lock(t, newLocker(t, rdb), "other")
	release(t, other)
	release(t, other)
	if got := rdb.Get(t.Context(), "reqlock:k").Val(); got != lease.Token() {
		t.Errorf("the key holds %q", got)
	}
	release(t, lease)
	if rdb.Exists(t.Context(), "reqlock:k").Val() != 0 {
		t.Error("the release by the token of the lease did not free the key")
	}
}

func testKeyOfDeadHolderIsFreeAfterItsTTL(t *testing.T, servers *deployment) {
	t.Helper()
	const ttl = time.Second
	// The proxy cuts the client off for good, as the death of its process does.
	proxy := servers.Proxy(t)
	dying := servers.newLocker(t, servers.Client(t, redistest.Through(proxy), func(o *redis.UniversalOptions) { o.ReadTimeout = time.Second }), core.WithTTL(ttl))
	begun := time.Now()
	lock(t, dying, "k")
	granted := time.Now()
	proxy.Refuse(true)

	lease := lock(t, servers.newLocker(t, servers.Client(t)), "k")
	got := time.Now()
	// A waiter sees the end of the key within a second. A busy machine may need four more.
	if got.Sub(begun) < ttl || got.Sub(granted) > ttl+5*time.Second {
		t.Errorf("free after %v to %v, want %v", got.Sub(granted), got.Sub(begun), ttl)
	}
	release(t, lease)
}

func testClassicRecipe(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	for _, prefix := range []string{"reqlock:", "{app}:", ""} {
		servers.Grant(redistest.PrefixRights(prefix)...)
		t.Run(prefix, func(t *testing.T) {
			locks := newLocker(t, rdb, core.WithPrefix(prefix))
			key := servers.prefix + "account:42"
			t.Cleanup(func() { rdb.Del(context.Background(), prefix+key) })
			setNX := func() bool {
				return rdb.SetNX(t.Context(), prefix+key, "a foreign value", time.Minute).Val()
			}
			if !setNX() {
				t.Fatal("the key is not free")
			}
			wantError(t, errorOf(locks.TryLock(t.Context(), key)), core.ErrBusy)
			rdb.Del(t.Context(), prefix+key)
			lease := lock(t, locks, key)
			if setNX() {
				t.Error("a classic client took a lock that reqlock holds")
			}
			if life := rdb.PTTL(t.Context(), prefix+key).Val(); life <= 0 || life > 10*time.Second {
				t.Errorf("the key lives for %v", life)
			}
			release(t, lease)
			if !setNX() {
				t.Error("the key is not free for a classic client")
			}
		})
	}
}

func testLeaseIsLostToItsOwnToken(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks, events := servers.observed(t, rdb, core.WithTTL(4*time.Second))
	releaseByToken := func(lease *core.Lease) (freed any, err error) {
		return rdb.Eval(t.Context(), compareAndDelete, []string{servers.name("k")}, lease.Token()).Result()
	}
	lease := lock(t, locks, "k")
	if freed, err := releaseByToken(lease); err != nil || freed != int64(1) {
		t.Fatalf("freed %v: %v", freed, err)
	}
	// More than once, like redistest.Lose: on a busy machine a late copy of the command that took the key takes it again.
	suite.Eventually(t, "the lease is lost", func() bool {
		if _, err := releaseByToken(lease); err != nil {
			t.Fatal(err)
		}
		return lease.Context().Err() != nil
	})
	wantError(t, context.Cause(lease.Context()), core.ErrLost)
	wantError(t, lease.Release(t.Context()), core.ErrLost)
	wantError(t, lease.Extend(t.Context(), time.Second), core.ErrLost)
	suite.Eventually(t, "the observer receives the loss", func() bool { return len(events.of(core.Lost)) == 1 })

	// The release finds the loss at the latest, and Do returns it.
	locks = servers.newLocker(t, rdb, withoutResend()...)
	err := locks.Do(t.Context(), "k", func(ctx context.Context) error {
		inner, _ := core.FromContext(ctx)
		_, err := releaseByToken(inner)
		return err
	})
	wantError(t, err, core.ErrLost)
}

func TestClientsDatabaseIsUsed(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant("+select")
	third := server.Client(t, func(o *redis.Options) { o.DB = 3 })
	lease := lock(t, newLocker(t, third), "k")
	if server.Client(t).Exists(t.Context(), "reqlock:k").Val() != 0 || third.Get(t.Context(), "reqlock:k").Val() != lease.Token() {
		t.Error("the lock is in another database")
	}
	release(t, lock(t, newLocker(t, server.Client(t)), "k"))
	release(t, lease)
}

func testOnlyTheFirstWaiterSendsCommands(t *testing.T, servers *deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	locks, events := servers.observed(t, servers.Client(t, redistest.Through(proxy)))
	lease := lock(t, locks, "k")
	proxy.ResetCommands()
	wait := startWaiters(t, locks, events, "k", 50)
	if commands := proxy.Commands(); commands["SET"]+commands["EVALSHA"]+commands["EVAL"] != 0 {
		t.Errorf("50 waiters sent %v", commands)
	}
	release(t, lease)
	wait()
	if n := proxy.Commands()["SET"]; n > 5 {
		t.Errorf("%d SETs for 50 hand-offs", n)
	}
}

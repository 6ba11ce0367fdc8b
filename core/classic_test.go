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
)

// compareAndDelete is the classic release script, as clients in other languages
// send it.
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

func ofNineOneWins(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	one := newLocker(t, servers.Client(t))
	for name, locker := range map[string]func(*testing.T) *core.Locker{
		"one process":    func(*testing.T) *core.Locker { return one },
		"nine processes": func(t *testing.T) *core.Locker { t.Helper(); return newLocker(t, servers.Client(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			var won, busy atomic.Int32
			var group sync.WaitGroup
			all := make(chan struct{})
			for range 9 {
				locks := locker(t)
				group.Go(func() {
					<-all
					switch _, err := locks.TryLock(t.Context(), name); {
					case err == nil:
						won.Add(1)
					case errors.Is(err, core.ErrBusy) && !errors.Is(err, core.ErrWaitTimeout):
						busy.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			close(all)
			group.Wait()
			if won.Load() != 1 || busy.Load() != 8 {
				t.Errorf("%d won and %d were busy, want 1 and 8", won.Load(), busy.Load())
			}
		})
	}
}

func waitersOfManyProcessesExcludeEachOther(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	var processes []*core.Locker
	for range 4 {
		processes = append(processes, newLocker(t, servers.Client(t)))
	}
	takeTurns(t, processes, 8, 10)
}

// takeTurns lets so many callers of each process take so many turns on one key. Each
// must get them, and no two at once.
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

//faults:row 9
func TestAnothersTokenReleasesNothing(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
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
		t.Error("our own token did not release it")
	}
}

func aHolderThatDiesFreesTheKeyAtItsTTL(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	const ttl = time.Second
	// A client that is cut off for good is a process that died.
	proxy := servers.Proxy(t)
	dying := newLocker(t, servers.Client(t, redistest.Through(proxy), func(o *redis.UniversalOptions) { o.ReadTimeout = time.Second }), core.WithTTL(ttl))
	begun := time.Now()
	lock(t, dying, "k")
	granted := time.Now()
	proxy.Refuse(true)

	lease := lock(t, newLocker(t, servers.Client(t)), "k")
	got := time.Now()
	if got.Sub(begun) < ttl || got.Sub(granted) > ttl+5*time.Second {
		t.Errorf("free after %v to %v, want %v", got.Sub(granted), got.Sub(begun), ttl)
	}
	release(t, lease)
}

func theClassicRecipeExcludesUsAndIsExcluded(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	for _, prefix := range []string{"reqlock:", "{app}:", ""} {
		servers.Grant(redistest.PrefixRights(prefix)...)
		t.Run(prefix, func(t *testing.T) {
			locks := newLocker(t, rdb, core.WithPrefix(prefix))
			raw := func() bool {
				return rdb.SetNX(t.Context(), prefix+"account:42", "a foreign value", time.Minute).Val()
			}
			if !raw() {
				t.Fatal("the key is not free")
			}
			_, err := locks.TryLock(t.Context(), "account:42")
			wantError(t, err, core.ErrBusy)
			rdb.Del(t.Context(), prefix+"account:42")
			lease := lock(t, locks, "account:42")
			if raw() {
				t.Error("a classic client took our lock")
			}
			if life := rdb.PTTL(t.Context(), prefix+"account:42").Val(); life <= 0 || life > 10*time.Second {
				t.Errorf("the key lives for %v", life)
			}
			release(t, lease)
			if !raw() {
				t.Error("the key is not free for a classic client")
			}
		})
	}
}

func weAreToldWhenOurTokenIsUsedToReleaseIt(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	rdb := servers.Client(t)
	heard := &events{}
	locks := newLocker(t, rdb, core.WithTTL(2*time.Second), core.WithObserver(heard.observe))
	lease := lock(t, locks, "k")
	if freed := rdb.Eval(t.Context(), compareAndDelete, []string{"reqlock:k"}, lease.Token()).Val(); freed != int64(1) {
		t.Fatalf("freed %v", freed)
	}
	<-lease.Context().Done()
	wantError(t, context.Cause(lease.Context()), core.ErrLost)
	wantError(t, lease.Release(t.Context()), core.ErrLost)
	wantError(t, lease.Extend(t.Context(), time.Second), core.ErrLost)
	await(t, "the observer is told", func() bool { return len(heard.of(core.Lost)) == 1 })

	// Seen at the release at the latest, and then by Do as well.
	err := locks.Do(t.Context(), "k", func(ctx context.Context) error {
		inner, _ := core.FromContext(ctx)
		return rdb.Eval(ctx, compareAndDelete, []string{"reqlock:k"}, inner.Token()).Err()
	})
	wantError(t, err, core.ErrLost)
}

func TestTheDatabaseIndexOfTheClientIsRespected(t *testing.T) {
	server := redistest.Start(t)
	server.Grant("+select")
	third := server.Client(t, func(o *redis.Options) { o.DB = 3 })
	lease := lock(t, newLocker(t, third), "k")
	if server.Client(t).Exists(t.Context(), "reqlock:k").Val() != 0 || third.Get(t.Context(), "reqlock:k").Val() != lease.Token() {
		t.Error("the lock is in another database")
	}
	release(t, lock(t, newLocker(t, server.Client(t)), "k"))
	release(t, lease)
}

func onlyTheHeadOfTheLineAsksRedis(t *testing.T, servers *redistest.Deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	heard := &events{}
	locks := newLocker(t, servers.Client(t, redistest.Through(proxy)), core.WithObserver(heard.observe))
	lease := lock(t, locks, "k")
	proxy.ResetCommands()
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := locks.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	await(t, "all wait", func() bool { return len(heard.of(core.Waiting)) == 50 })
	if commands := proxy.Commands(); commands["SET"]+commands["EVALSHA"]+commands["EVAL"] != 0 {
		t.Errorf("50 waiters sent %v", commands)
	}
	release(t, lease)
	group.Wait()
	if n := proxy.Commands()["SET"]; n > 5 {
		t.Errorf("%d SETs for 50 hand-offs", n)
	}
}

package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
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

// A program that leaves reqlock has processes of both kinds for a while: docs/compatibility.md has the plain lock. All of
// them together have one holder at a time, and each of them gets the lock.
func TestAPlainLockTakesOver(t *testing.T) {
	t.Parallel()
	const each = 30
	server := redistest.Reuse(t)
	locks, rdb := newLocker(t, server.Client(t)), server.Client(t)
	var holders, overlaps atomic.Int32
	work := func() {
		if holders.Add(1) > 1 {
			overlaps.Add(1)
		}
		runtime.Gosched()
		holders.Add(-1)
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for range each {
				if err := locks.Do(t.Context(), "k", func(context.Context) error { work(); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for n := range each {
				token := fmt.Sprint("plain ", i, " ", n)
				suite.EventuallyAnywhere(t, "the plain lock is free", func() bool {
					return rdb.SetNX(t.Context(), "reqlock:k", token, time.Minute).Val()
				})
				work()
				if freed := rdb.Eval(t.Context(), compareAndDelete, []string{"reqlock:k"}, token).Val(); freed != int64(1) {
					t.Errorf("freed %v", freed)
				}
			}
		})
	}
	all.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d times there were two holders", n)
	}
}

func testClassicRecipe(t *testing.T, servers *deployment) {
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

// A client replaces the lock by a list. The lease is lost in time, other callers get a fault,
// and the list does not change.
func TestKeyThatBecomesAList(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	locks := newLocker(t, server.Client(t), core.WithTTL(time.Second), core.WithFencing(true))
	lease := lock(t, locks, "k")
	do(t, admin, "DEL", "reqlock:k")
	do(t, admin, "RPUSH", "reqlock:k", "theirs")

	suite.AwaitClosed(t, "the lease is lost", lease.Context().Done())
	wantError(t, context.Cause(lease.Context()), core.ErrLost)
	for what, err := range map[string]error{
		"a try":     errorOf(newLocker(t, server.Client(t)).TryLock(t.Context(), "k")),
		"a waiter":  errorOf(newLocker(t, server.Client(t), core.WithWait(time.Hour)).Lock(t.Context(), "k")),
		"a release": lease.Release(t.Context()),
	} {
		if what != "a release" {
			wantError(t, err, core.ErrUnavailable)
			var reply redis.Error
			if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err == nil || errors.Is(err, core.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := admin.LRange(t.Context(), "reqlock:k", 0, -1).Val(); len(got) != 1 || got[0] != "theirs" {
		t.Errorf("the list is now %q", got)
	}
	do(t, admin, "DEL", "reqlock:k")
	release(t, lock(t, locks, "k"))
}

// Another program has set the key without a TTL. The log line of a refusal says so, because the
// key stays locked until somebody deletes it.
func TestKeyWithoutTTLIsNamedInTheRefusal(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	for _, key := range []string{"k", "i:k", "i:k2"} {
		do(t, admin, "SET", "reqlock:"+key, "theirs")
	}
	var log logBuffer
	locks := newLocker(t, server.Client(t), log.all()...)
	refusals := func() map[string]error {
		waiting := locks.With(core.WithWait(time.Second))
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(map[string]error)
		var mu sync.Mutex
		var all sync.WaitGroup
		for what, call := range map[string]func() error{
			"an attempt":                  func() error { return errorOf(locks.Begin(t.Context(), "k", nil)) },
			"an attempt that waits":       func() error { return errorOf(waiting.Begin(t.Context(), "k2", nil)) },
			"a waiter":                    func() error { return errorOf(waiting.Lock(t.Context(), "k")) },
			"a waiter whose context ends": func() error { return errorOf(locks.Lock(ended, "k")) },
			"a reader":                    func() error { return errorOf(waiting.With(core.WithShared(true)).Lock(t.Context(), "k")) },
		} {
			all.Go(func() {
				err := call()
				mu.Lock()
				defer mu.Unlock()
				errs[what] = err
			})
		}
		all.Wait()
		return errs
	}
	const says = "the key in Redis has no TTL"
	for what, err := range refusals() {
		if !errors.Is(err, core.ErrBusy) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := strings.Count(log.String(), says); n != 5 {
		t.Errorf("%d lines of\n%s", n, log.String())
	}
	for _, key := range []string{"k", "i:k", "i:k2"} {
		do(t, admin, "EXPIRE", "reqlock:"+key, 60)
	}
	for what, err := range refusals() {
		if !errors.Is(err, core.ErrBusy) || strings.Contains(err.Error(), says) {
			t.Errorf("%s, with a TTL: %v", what, err)
		}
	}
}

// A key with an empty value is locked by a foreign client.
func testEmptyValueBelongsToAnother(t *testing.T, servers *deployment) {
	proxy := servers.Proxy(t)
	servers.Client(t).Set(t.Context(), servers.name("k"), "", time.Minute)
	locks := servers.newLocker(t, servers.Client(t, redistest.Through(proxy)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	_, err := locks.TryLock(ctx, "k")
	wantError(t, err, core.ErrBusy)
	t.Logf("TryLock: %v after %v, commands %v", err, time.Since(begun), proxy.Commands())
	proxy.ResetCommands()
	wantError(t, errorOf(locks.With(core.WithWait(500*time.Millisecond)).Lock(t.Context(), "k")), core.ErrWaitTimeout)
	if n := proxy.Commands()["EVALSHA"]; n > 10 {
		t.Errorf("a waiter of 500 ms sent %d EVALSHA", n)
	}
}

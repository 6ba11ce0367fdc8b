package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The error of a caller whose context had ended before says so, and not that a wait was over.
func TestErrorSaysThatTheContextHadEndedBefore(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	past, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	under, err := underLock(func(fn func(context.Context) error) error { return locks.Do(t.Context(), "a", fn) })
	noError(t, err)
	outer := lock(t, locks, "b")
	inner, err := locks.Lock(context.WithoutCancel(outer.Context()), "b")
	noError(t, err)
	release(t, outer)

	const before, lost = "reqlock: the context had ended before the call: ", "a lease of the caller has ended"
	run := func(context.Context) error { return errors.New("ran") }
	for name, test := range map[string]struct {
		err          error
		text, detail string
	}{
		"Lock, canceled":     {errorOf(locks.Lock(endedContext(), "k")), before + "context canceled", "The request was canceled before it could run."},
		"TryLock, deadline":  {errorOf(locks.TryLock(past, "k")), before + "context deadline exceeded", "The request ran out of time before it could run."},
		"Do, after another":  {locks.Do(under, "a", run), before + "context canceled", "The request was canceled before it could run."},
		"DoAll":              {locks.DoAll(endedContext(), []string{"a", "b"}, run), before + "context canceled", "The request was canceled before it could run."},
		"Begin":              {errorOf(locks.Begin(endedContext(), "k", nil)), before + "context canceled", "The request was canceled before it could run."},
		"under a lost lease": {errorOf(locks.Lock(inner.Context(), "k")), before + lost, "The request had lost its lock before it asked for this one."},
	} {
		if refusal, _ := core.RefusalOf(test.err); test.err == nil || test.err.Error() != test.text || refusal.Detail != test.detail {
			t.Errorf("%s: %v, %q", name, test.err, refusal.Detail)
		}
	}
}

// A context that ends during the call ends a wait, also after the first of several keys is locked.
func TestErrorSaysThatTheContextEndedAWait(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]core.EventKind{"while it waits": core.Waiting, "between two keys": core.Acquired} {
		rdb := newEmbedded(t)
		busy := lock(t, newLocker(t, rdb), "b")
		ctx, cancel := context.WithCancel(t.Context())
		locks := newLocker(t, rdb, core.WithObserver(func(e core.Event) {
			if e.Kind == end {
				cancel()
			}
		}))
		if err := locks.DoAll(ctx, []string{"a", "b"}, nil); err == nil || err.Error() != "reqlock: wait timed out: context canceled" {
			t.Errorf("%s: %v", name, err)
		}
		release(t, busy)
	}
}

// The network delays the first send of a take until the lease of the second one was released, and
// nobody reads its reply. The key must not stay taken until the TTL ends.
func TestTakeThatArrivesAfterTheReleaseIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]core.Option{
		"alone": core.WithShared(false), "one permit": core.WithPermits(1), "permits": core.WithPermits(2), "shared": core.WithShared(true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			direct := server.Client(t)
			locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(4*time.Second)).With(option)
			warm, err := locks.TryLock(t.Context(), "k") // loads the scripts
			noError(t, err)
			noError(t, warm.Release(t.Context()))
			var delayed []any
			drop, _ := proxy.HoldCommand(func(command []string) bool {
				if !slices.ContainsFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "reqlock:k") }) {
					return false
				}
				for _, arg := range command {
					delayed = append(delayed, arg)
				}
				return true
			})
			defer drop()
			lease, err := locks.TryLock(t.Context(), "k")
			noError(t, err)
			noError(t, lease.Release(t.Context()))
			var taken *redis.IntCmd
			_, err = direct.TxPipelined(t.Context(), func(p redis.Pipeliner) error { // before the product gives it back
				p.Do(t.Context(), delayed...)
				taken = p.Exists(t.Context(), "reqlock:k")
				return nil
			})
			if noError(t, err); taken.Val() != 1 {
				t.Fatal("the take has not arrived")
			}
			suite.Eventually(t, "the key is free", func() bool {
				return direct.Exists(t.Context(), "reqlock:k").Val() == 0
			})
		})
	}
}

package core_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
	var log strings.Builder
	locks := newLocker(t, server.Client(t), core.WithObserver(core.SlogObserver(
		slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	)))
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

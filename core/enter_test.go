package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestEnter(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	key := field("id")

	ctx, done, err := core.Enter(t.Context(), locks, form{"id": "42"}, key)
	noError(t, err)
	lease, ok := core.LeaseFromContext(ctx)
	if !ok || lease.Key() != "42" || rdb.Get(t.Context(), "reqlock:42").Val() != lease.Token() {
		t.Error("not locked")
	}
	outside, nothing, err := core.Enter(t.Context(), locks, form{"id": "42"}, key)
	wantError(t, err, core.ErrBusy)
	if errors.Is(err, core.ErrWaitTimeout) {
		t.Errorf("Enter has waited: %v", err)
	}
	nothing() // is never nil
	if outside != t.Context() {
		t.Error("a refused request has another context")
	}
	done()
	done()
	if ctx.Err() == nil || rdb.Exists(t.Context(), "reqlock:42").Val() != 0 {
		t.Error("not released")
	}
}

func TestEnterWithoutALock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	own := errors.New("own")
	for name, test := range map[string]struct {
		id   string
		keys []core.Key[form]
		want error
	}{
		"skip":               {"!skip", []core.Key[form]{field("id")}, nil},
		"each skips":         {"!skip", []core.Key[form]{field("id"), field("id")}, nil},
		"no key":             {"", []core.Key[form]{field("id")}, core.ErrNoKey},
		"bad":                {"!bad", []core.Key[form]{field("id")}, core.ErrInvalidKey},
		"second has no key":  {"42", []core.Key[form]{field("id"), field("other")}, core.ErrNoKey},
		"an error of theirs": {"42", []core.Key[form]{core.KeyOf(func(form) (string, error) { return "", own })}, own},
		"a key and an error": {"42", []core.Key[form]{field("id"), core.KeyOf(func(form) (string, error) {
			return "x", own
		})}, own},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, release, err := core.Enter(t.Context(), locks, form{"id": test.id}, core.All(test.keys...))
			release()
			if !errors.Is(err, test.want) || err != nil && ctx != t.Context() {
				t.Errorf("got %v", err)
			}
			if _, locked := core.LeaseFromContext(ctx); locked {
				t.Error("there is a lease")
			}
		})
	}
	lease := lock(t, locks, "42") // none of the calls has left a lock
	release(t, lease)

	ctx, done, err := core.Enter(t.Context(), locks, form{"id": "42", "b": "!skip"}, core.All(field("b"), field("id")))
	if got, _ := core.LeaseFromContext(ctx); err != nil || got.Key() != "42" {
		t.Errorf("one of two keys skips: %v", err)
	}
	done()
}

func TestEnterWaitsForWithWait(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks, "42")
	request, key := form{"id": "42"}, field("id")
	wantError(t, enter(t.Context(), locks.With(core.WithWait(time.Millisecond)), request, key), core.ErrWaitTimeout)
	entered := start(func() error { return enter(t.Context(), locks.With(core.WithWait(time.Minute)), request, key) })
	release(t, lease)
	noError(t, suite.Receive(t, "the waiter returns", entered))
	if panicOf(func() { _ = enter(t.Context(), locks, nil, []core.Key[form]{}...) }) == "" {
		t.Error("Enter with the zero Key does not panic")
	}
}

func TestLossOfOneKeyEndsTheContext(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, core.WithTTL(4*time.Second), core.WithWait(20*time.Second))
	ctx, done, err := core.Enter(t.Context(), locks, form{"a": "1", "b": "2"}, core.All(field("a"), field("b")))
	noError(t, err)
	defer done()
	redistest.Lose(t, rdb, "the context ends", func() bool { return ctx.Err() != nil }, "reqlock:1")
	wantError(t, context.Cause(ctx), core.ErrLost)
}

// The request waits under a lease, and that lease ends. This is neither the end of the
// caller's context nor a fault of Redis, so the request does not run unlocked.
func TestEndOfLeaseDuringWaitForAnotherIsWaitTimeout(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithFailOpen(true), core.WithWait(time.Minute))
	busy := lock(t, locks, "b")
	short := locks.With(core.WithMaxHold(20 * time.Millisecond))
	never := func(context.Context) error {
		t.Error("ran without its lock")
		return nil
	}
	for name, run := range map[string]func() error{
		"lost": func() error {
			expires := locks.With(core.WithTTL(2*time.Second), core.WithRenewal(false))
			return expires.DoAll(t.Context(), []string{"a", "b"}, never)
		},
		"several keys": func() error { return short.DoAll(t.Context(), []string{"a", "b"}, never) },
		"enter":        func() error { return enter(t.Context(), short, form{"a": "a", "b": "b"}, field("a"), field("b")) },
		"nested": func() (inner error) {
			_ = short.Do(t.Context(), "a", func(ctx context.Context) error {
				inner = locks.Do(ctx, "b", never)
				return nil
			})
			return inner
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := run()
			wantError(t, err, core.ErrWaitTimeout)
			if got, _ := core.RefusalOf(err); got.Code != "wait_timeout" || errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrLost) {
				t.Errorf("%v: refusal %+v", err, got)
			}
		})
	}
	release(t, busy)
}

func TestCanceledRequestDoesNotRunUnlocked(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithFailOpen(true), core.WithCommandTimeout(10*time.Second), core.WithTTL(time.Minute))
	_, held := proxy.HoldCommand(redistest.Named("SET"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-held
		cancel()
	}()
	err := locks.Do(ctx, "k", func(context.Context) error {
		t.Error("ran for a canceled request")
		return nil
	})
	wantError(t, err, context.Canceled, core.ErrUnavailable)
	proxy.Cut()
}

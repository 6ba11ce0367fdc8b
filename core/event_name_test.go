package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Events have the name of the key that was read, or that of WithName, whichever way the lock
// was taken.
func TestEventsHaveTheNameOfTheLock(t *testing.T) {
	t.Parallel()
	account, user := field("a").Named("account"), field("b").Named("user")
	request := form{"a": "1", "b": "2"}
	nothing := func(context.Context) error { return nil }
	leave := func(lease *core.Lease, err error) error { return errors.Join(err, lease.Release(context.Background())) }
	commit := func(a *core.Attempt, err error) error {
		if err != nil {
			return err
		}
		return a.Commit(context.Background(), nil)
	}
	for name, test := range map[string]struct {
		run         func(ctx context.Context, l *core.Locker) error
		named, view string // the names of Acquired without and with WithName("view")
	}{
		"Lock":    {func(ctx context.Context, l *core.Locker) error { return leave(l.Lock(ctx, "k")) }, "", "view"},
		"TryLock": {func(ctx context.Context, l *core.Locker) error { return leave(l.TryLock(ctx, "k")) }, "", "view"},
		"Do":      {func(ctx context.Context, l *core.Locker) error { return l.Do(ctx, "k", nothing) }, "", "view"},
		"DoAll": {
			func(ctx context.Context, l *core.Locker) error { return l.DoAll(ctx, []string{"k", "j"}, nothing) }, ",", "view,view",
		},
		"LockAll": {func(ctx context.Context, l *core.Locker) error {
			all, err := l.LockAll(ctx, []string{"k", "j"})
			return errors.Join(err, all.Release(ctx))
		}, ",", "view,view"},
		"Begin":               {func(ctx context.Context, l *core.Locker) error { return commit(l.Begin(ctx, "k", nil)) }, "", "view"},
		"Enter":               {func(ctx context.Context, l *core.Locker) error { return enter(ctx, l, request, account) }, "account", "view"},
		"Enter, no name":      {func(ctx context.Context, l *core.Locker) error { return enter(ctx, l, request, field("a")) }, "", "view"},
		"Enter, several keys": {func(ctx context.Context, l *core.Locker) error { return enter(ctx, l, request, user, account) }, "account,user", "view,view"},
		"Enter, equal keys": {func(ctx context.Context, l *core.Locker) error {
			return enter(ctx, l, request, account, core.Getter(func(form) string { return "account:1" }))
		}, "account", "view"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, view := range []bool{false, true} {
				locks, events := observed(t, newEmbedded(t))
				want := test.named
				if view {
					locks, want = locks.With(core.WithName("view")), test.view
				}
				noError(t, test.run(t.Context(), locks))
				if got := events.namesOf(core.Acquired); got != want {
					t.Errorf("acquired %q, want %q", got, want)
				}
				if got := events.namesOf(core.Released); len(got) != len(want) {
					t.Errorf("released %q, want %q", got, want)
				}
			}
		})
	}
}

// The name is in the events of requests that do not run, too.
func TestRefusalsHaveTheNameOfTheLock(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]core.Option{
		"orders,orders,orders,orders,orders,orders": {core.WithName("orders")},
		"account,account,user,,,":                   nil,
	} {
		locks, events := observed(t, newEmbedded(t), opts...)
		account := field("a").Named("account")
		lease := lock(t, locks, "account:1")
		wantError(t, enter(t.Context(), locks, form{"a": "1"}, account), core.ErrBusy)
		wantError(t, enter(t.Context(), locks, form{}, account), core.ErrNoKey)
		wantError(t, enter(t.Context(), locks, form{}, account.Named("user").Hashed()), core.ErrNoKey)
		wantError(t, errorOf(locks.Lock(t.Context(), "")), core.ErrNoKey)
		wantError(t, errorOf(locks.LockAll(t.Context(), nil)), core.ErrNoKey)
		wantError(t, errorOf(locks.Begin(t.Context(), strings.Repeat("k", 5000), nil)), core.ErrInvalidKey)
		if got := events.namesOf(core.Refused); got != want {
			t.Errorf("refused %q, want %q", got, want)
		}
		for i, event := range events.of(core.Refused) {
			if event.Idempotent != (i == 5) {
				t.Errorf("refusal %d: attempt %t", i, event.Idempotent)
			}
		}
		release(t, lease)
	}
}

// The name does not change the key.
func TestNameIsNoPartOfTheKey(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	lease := lock(t, locks.With(core.WithName("one")), "k")
	wantError(t, errorOf(locks.With(core.WithName("two")).TryLock(t.Context(), "k")), core.ErrBusy)
	if lease.Key() != "k" {
		t.Errorf("the key is %q", lease.Key())
	}
	release(t, lease)
}

// The names of a middleware or a view are known before their first request.
func TestNamesAreRegistered(t *testing.T) {
	t.Parallel()
	account, user := field("a").Named("account"), field("b").Named("user")
	for want, register := range map[string]func(l *core.Locker) error{
		"view": func(l *core.Locker) error { l.With(core.WithName("view")); return nil },
		"account": func(l *core.Locker) error {
			return errorOf(adapter.NewLock("test", "Middleware", l, account.Named("account"), nil))
		},
		"": func(l *core.Locker) error {
			return errorOf(adapter.NewLock("test", "Middleware", l, core.Join(account, user), nil))
		},
		"orders": func(l *core.Locker) error {
			return errorOf(adapter.NewLock("test", "Middleware", l, account, []core.Option{core.WithName("orders")}))
		},
		"account,user,": func(l *core.Locker) error {
			return errorOf(adapter.NewLock("test", "Middleware", l, core.All(account, user, account, field("c")), nil))
		},
	} {
		locks, events := observed(t, newEmbedded(t))
		noError(t, register(locks))
		if got := events.namesOf(core.Registered); got != want || len(events.of(core.Registered)) == 0 {
			t.Errorf("registered %q, want %q", got, want)
		}
	}
}

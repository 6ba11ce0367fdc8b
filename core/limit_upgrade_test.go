package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A nested lock that asks for at most what its outer lease has is nested. One that asks for
// more is refused at once: it never waits.
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	limits := []struct {
		name string
		opt  core.Option
	}{ // from what excludes most to what excludes least
		{"alone", core.WithShared(false)},
		{"one permit", core.WithPermits(1)},
		{"two permits", core.WithPermits(2)},
		{"three permits", core.WithPermits(3)},
		{"shared", core.WithShared(true)},
	}
	for has, outer := range limits {
		for asks, inner := range limits {
			t.Run(inner.name+" under "+outer.name, func(t *testing.T) {
				t.Parallel()
				events := &recorder{}
				inBubble(t, func(t *testing.T, locks *core.Locker) {
					lease := lock(t, locks.With(outer.opt), "k")
					nested, err := locks.With(inner.opt).Lock(lease.Context(), "k")
					if asks >= has {
						if err != nil || nested.Shared() != lease.Shared() || nested.Token() != lease.Token() {
							t.Fatalf("nested: %v", err)
						}
						release(t, nested)
						release(t, lease)
						return
					}
					wantError(t, err, core.ErrUpgrade)
					if waits := len(events.of(core.Waiting)); waits > 0 {
						t.Error("the nested lock waited")
					}
					if refused := events.of(core.Refused); len(refused) != 1 || !errors.Is(refused[0].Err, core.ErrUpgrade) {
						t.Errorf("events %+v", events.all())
					}
					release(t, lease)
				}, core.WithWait(time.Minute), core.WithObserver(events.record))
			})
		}
	}
}

// The cause of ErrUpgrade says what the program has to change, and so does one warning for each name.
func TestUpgradeNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	events := &recorder{}
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		testUpgradeNamesWhatIsMissing(t, locks)
		testUpgradeNamesWhatIsMissing(t, locks)
		testUpgradeNamesWhatIsMissing(t, locks.With(core.WithName("orders")))
	}, core.WithObserver(events.record))
	warned := map[string]int{}
	for _, event := range events.of(core.Warned) {
		warned[event.Err.Error()]++
	}
	for text, n := range warned {
		if n != 1 || len(warned) != 6 || !strings.HasPrefix(text, core.ErrUpgrade.Error()) {
			t.Errorf("warned %d times of %d texts: %s", n, len(warned), text)
		}
	}
	if n := warned[core.ErrUpgrade.Error()+`: fewer permits, and the outer lease has more: give both the same number: the lock has the name "orders"`]; n != 1 {
		t.Errorf("warned %d times of orders: %v", n, warned)
	}
}

func testUpgradeNamesWhatIsMissing(t *testing.T, locks *core.Locker) {
	for want, views := range map[string][2]*core.Locker{
		"a fencing number":      {locks, locks.With(core.WithFencing(true))},
		"the key alone":         {locks.With(core.WithShared(true)), locks},
		"fewer permits":         {locks.With(core.WithPermits(3)), locks.With(core.WithPermits(2))},
		"set WithFencing on bo": {locks.With(core.WithShared(true)), locks.With(core.WithFencing(true), core.WithShared(true))},
	} {
		lease := lock(t, views[0], "k")
		_, err := views[1].TryLock(lease.Context(), "k")
		wantError(t, err, core.ErrUpgrade)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		release(t, lease)
	}
}

// Of several keys, one that asks for more than its outer lease has is refused before the
// others are waited for.
func TestUpgradeOfOneKeyWaitsForNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		other := lock(t, locks, "a")
		readers := locks.With(core.WithShared(true))
		err := readers.Do(t.Context(), "b", func(ctx context.Context) error {
			begun := time.Now()
			_, err := locks.LockAll(ctx, []string{"a", "b"})
			wantError(t, err, core.ErrUpgrade)
			_, _, err = core.Enter(ctx, locks, form{"a": "a", "b": "b"}, core.All(field("a"), field("b")))
			if waited := time.Since(begun); waited > 0 {
				t.Errorf("refused after %v", waited)
			}
			return err
		})
		wantError(t, err, core.ErrUpgrade)
		release(t, other)
	}, core.WithWait(time.Minute))
}

// A nested lease has the fencing number of the outer lease. If the outer lease has none, a
// nested lock with WithFencing is refused.
func TestNestedLeaseNeedsTheFenceOfItsOuterLease(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	events := &recorder{}
	plain := newLocker(t, rdb, core.WithObserver(events.record))
	fenced := plain.With(core.WithFencing(true), core.WithFailOpen(true), core.WithName("accounts"))
	never := func(context.Context) error {
		t.Error("fn ran without a fencing number")
		return nil
	}
	outer := lock(t, plain, "k")
	ctx := outer.Context()
	attempt := begin(t, plain, "k")
	for name, run := range map[string]func() error{
		"lock":  func() error { _, err := fenced.Lock(ctx, "k"); return err },
		"try":   func() error { _, err := fenced.TryLock(ctx, "k"); return err },
		"do":    func() error { return fenced.Do(ctx, "k", never) },
		"all":   func() error { return fenced.DoAll(ctx, []string{"a", "k"}, never) },
		"enter": func() error { return enter(ctx, fenced, form{"id": "k"}, field("id")) },
		"begin": func() error { _, err := fenced.Begin(attempt.Lease().Context(), "k", nil); return err },
	} {
		before := len(events.of(core.Refused))
		err := run()
		wantError(t, err, core.ErrUpgrade)
		key := "k"
		if name == "begin" {
			key = "i:k"
		}
		refused := events.of(core.Refused)[before:]
		if len(refused) != 1 || !errors.Is(refused[0].Err, core.ErrUpgrade) || refused[0].Key.Raw() != key ||
			refused[0].Name != "accounts" || refused[0].Idempotent != (name == "begin") {
			t.Errorf("%s: events %+v", name, refused)
		}
		wantRefusal(t, err, core.Refusal{Code: "upgrade", HTTP: 500, GRPC: 13})
	}
	if locked(t.Context(), rdb, "a") != 0 {
		t.Error("the other key of a refused caller is locked")
	}
	noError(t, attempt.Abort(t.Context()))
	release(t, outer)

	outer = lock(t, fenced, "k")
	for _, locks := range []*core.Locker{plain, fenced} {
		inner, err := locks.Lock(outer.Context(), "k")
		if err != nil || inner.Fence() != outer.Fence() || inner.Fence() == 0 {
			t.Errorf("fence %d within %d, %v", inner.Fence(), outer.Fence(), err)
		}
		release(t, inner)
	}
	release(t, outer)
}

package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// wantLeases fails the test unless the leases have these keys; "" is a nil lease.
func wantLeases(t *testing.T, leases []*core.Lease, keys ...string) {
	t.Helper()
	var got []string
	for _, lease := range leases {
		got = append(got, lease.Key())
	}
	if !slices.Equal(got, keys) {
		t.Errorf("leases of %q, want %q", got, keys)
	}
}

func TestLeasesFollowTheOrderOfTheKeys(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithFencing(true))
	for name, test := range map[string]struct {
		request form
		want    []string
	}{
		"in byte order":    {form{"from": "a", "to": "b"}, []string{"a", "b"}},
		"against it":       {form{"from": "b", "to": "a"}, []string{"b", "a"}},
		"equal":            {form{"from": "a", "to": "a"}, []string{"a", "a"}},
		"first is skipped": {form{"from": "!skip", "to": "a"}, []string{"", "a"}},
		"last is skipped":  {form{"from": "a", "to": "!skip"}, []string{"a", ""}},
		"both are skipped": {form{"from": "!skip", "to": "!skip"}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, done, err := core.Enter(t.Context(), locks, test.request, core.All(field("from"), field("to")))
			noError(t, err)
			defer done()
			leases := core.LeasesFromContext(ctx)
			wantLeases(t, leases, test.want...)
			first, found := core.LeaseFromContext(ctx)
			if at := slices.IndexFunc(leases, func(lease *core.Lease) bool { return lease != nil }); found != (at >= 0) ||
				found && leases[at] != first {
				t.Errorf("LeaseFromContext returns the lease of %q", first.Key())
			}
			seen := map[string]int64{}
			for _, lease := range leases {
				if lease != nil && (lease.Fence() == 0 || seen[lease.Key()] != 0 && seen[lease.Key()] != lease.Fence()) {
					t.Errorf("the fence of %q is %d", lease.Key(), lease.Fence())
				}
				seen[lease.Key()] = lease.Fence()
			}
		})
	}
}

func TestLeasesAreThoseOfTheInnermostLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	wantLeases(t, core.LeasesFromContext(t.Context()))
	outer, done, err := core.Enter(t.Context(), locks, form{"a": "1", "b": "2"}, core.All(field("b"), field("a")))
	noError(t, err)
	defer done()
	type ctxKey struct{}
	wantLeases(t, core.LeasesFromContext(context.WithValue(outer, ctxKey{}, 1)), "2", "1")

	// A request without a lock does not get the leases of the outer one.
	inner, doneInner, err := core.Enter(outer, locks, form{"c": "!skip"}, field("c"))
	noError(t, err)
	defer doneInner()
	wantLeases(t, core.LeasesFromContext(inner), "")
	if lease, _ := core.LeaseFromContext(inner); lease.Key() != "2" {
		t.Errorf("LeaseFromContext returns the lease of %q", lease.Key())
	}
	err = locks.DoAll(outer, []string{"3", "1"}, func(ctx context.Context) error {
		wantLeases(t, core.LeasesFromContext(ctx), "3", "1")
		return locks.Do(ctx, "4", func(ctx context.Context) error {
			wantLeases(t, core.LeasesFromContext(ctx), "4")
			return nil
		})
	})
	noError(t, err)
	attempt, err := locks.Begin(outer, "pay", nil)
	noError(t, err)
	wantLeases(t, core.LeasesFromContext(attempt.Lease().Context()), "i:pay")
	noError(t, attempt.Abort(t.Context()))
}

func TestLeasesOfRunWithoutLockAreNil(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, core.WithFailOpen(true))
	_ = rdb.Close()
	if err := locks.DoAll(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
		wantLeases(t, core.LeasesFromContext(ctx), "", "")
		return nil
	}); err != nil {
		t.Error(err)
	}
	ctx, done, err := core.Enter(t.Context(), locks, form{"a": "1", "b": "!skip"}, core.All(field("a"), field("b")))
	defer done()
	wantLeases(t, core.LeasesFromContext(ctx), "", "")
	noError(t, err)
}

func TestLockAll(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb, core.WithFencing(true))
	keys := []string{"b", "a", "b"}
	set, err := locks.LockAll(t.Context(), keys)
	noError(t, err)
	if n := locked(t.Context(), rdb, "a", "b"); n != 2 {
		t.Errorf("%d keys are locked", n)
	}
	wantLeases(t, set.Leases(), "b", "a", "b")
	wantLeases(t, core.LeasesFromContext(set.Context()), "b", "a", "b")
	if first, _ := core.LeaseFromContext(set.Context()); first.Key() != "b" {
		t.Errorf("LeaseFromContext returns the lease of %q", first.Key())
	}
	if a, b := set.Lease("a"), set.Lease("b"); a.Key() != "a" || b.Key() != "b" || a.Fence() == 0 || b.Fence() == 0 || a.Token() == b.Token() {
		t.Errorf("leases of %q and %q with the fences %d and %d", a.Key(), b.Key(), a.Fence(), b.Fence())
	}
	if other := set.Lease("c"); other != nil || other.Fence() != 0 {
		t.Error("there is a lease of a key that was not locked")
	}
	for range 2 {
		noError(t, set.Release(t.Context()))
	}
	if set.Context().Err() == nil || locked(t.Context(), rdb, "a", "b") != 0 {
		t.Error("not released")
	}

	one, err := locks.LockAll(t.Context(), []string{"c"})
	noError(t, err)
	wantLeases(t, one.Leases(), "c")
	rdb.Del(t.Context(), "reqlock:c")
	wantError(t, one.Release(nil), core.ErrLost) //nolint:staticcheck // nil is the background context
}

func TestLossOfOneKeyEndsALeaseSet(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	set, err := locks.LockAll(t.Context(), []string{"a", "b"})
	noError(t, err)
	rdb.Set(t.Context(), "reqlock:a", "another", time.Minute)
	wantError(t, set.Release(t.Context()), core.ErrLost)
	if n := locked(t.Context(), rdb, "a", "b"); n != 1 { // the lock of the other holder
		t.Errorf("%d keys are locked", n)
	}
}

func TestLockAllRefusesAndLeavesNoLock(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks := newLocker(t, rdb)
	busy := lock(t, locks, "b")
	for name, test := range map[string]struct {
		keys []string
		want error
	}{
		"no key":    {nil, core.ErrNoKey},
		"empty key": {[]string{"a", ""}, core.ErrNoKey},
		"long key":  {[]string{"a", strings.Repeat("x", 4097)}, core.ErrInvalidKey},
		"busy":      {[]string{"a", "b"}, core.ErrBusy},
	} {
		set, err := locks.With(core.WithWait(0)).LockAll(t.Context(), test.keys)
		wantError(t, err, test.want)
		if set != nil || set.Lease("a") != nil || set.Leases() != nil || set.Context() == nil || set.Release(t.Context()) != nil {
			t.Errorf("%s: the nil LeaseSet does something", name)
		}
		if n := locked(t.Context(), rdb, "a"); n != 0 {
			t.Errorf("%s: a key is left locked", name)
		}
	}
	release(t, busy)
}

// A job locks both accounts of a transfer, and gives the fencing number of each to the
// database.
func ExampleLocker_LockAll() {
	locks, end := newExample()
	defer end()

	from, to := "account:42", "account:7" // as Named("account") of a Key writes them
	both, err := locks.With(core.WithFencing(true)).LockAll(context.Background(), []string{from, to})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = both.Release(context.Background()) }()
	fmt.Println(both.Lease(from).Fence() > 0, both.Lease(to).Fence() > 0)
	// Output: true true
}

// Of equal keys with different limits, the one that excludes most is taken, and once.
func TestEqualKeysTakeTheStrictestLimitOnce(t *testing.T) {
	t.Parallel()
	a, b := field("a"), field("b")
	same := form{"a": "k", "b": "k"}
	for name, test := range map[string]struct {
		keys   []core.Key[form]
		want   int
		shared bool
	}{
		"alone beats shared":       {[]core.Key[form]{a.Shared(), b}, 1, false},
		"in each order":            {[]core.Key[form]{a, b.Shared()}, 1, false},
		"alone beats permits":      {[]core.Key[form]{a.Permits(3), b}, 1, false},
		"permits beat shared":      {[]core.Key[form]{a.Shared(), b.Permits(3)}, 3, true},
		"fewer permits beat more":  {[]core.Key[form]{a.Permits(3), b.Permits(2)}, 2, true},
		"one permit beats several": {[]core.Key[form]{a.Permits(1), b.Permits(2)}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, locks *core.Locker) {
				held := 0
				for range 4 {
					ctx, done, err := core.Enter(t.Context(), locks, same, core.All(test.keys...))
					defer done()
					if err != nil {
						wantError(t, err, core.ErrBusy)
						break
					}
					held++
					if leases := core.LeasesFromContext(ctx); len(leases) != 2 || leases[0].Token() != leases[1].Token() || leases[0].Shared() != test.shared {
						t.Errorf("leases %v", leases)
					}
				}
				if held != test.want {
					t.Errorf("%d requests at the same time, want %d", held, test.want)
				}
			})
		})
	}
}

package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// enterUntilBusy enters with the key, at most five times, and returns how many
// requests held the key at the same time.
func enterUntilBusy(t *testing.T, locks *core.Locker, key core.Key[form], f form) (held int) {
	t.Helper()
	locks = locks.With(core.WithWait(time.Millisecond)) // SharedWhen needs one
	for range 5 {
		_, done, err := core.Enter(t.Context(), locks, f, key)
		defer done()
		if err != nil {
			wantError(t, err, core.ErrBusy)
			return held
		}
		held++
	}
	return held
}

// Permits and Shared stay with a key in each composition.
func TestKeysKeepPermits(t *testing.T) {
	t.Parallel()
	const all = 5
	a := field("a")
	yes, no := func(form) bool { return true }, func(form) bool { return false }
	for name, test := range map[string]struct {
		key  core.Key[form]
		want int
	}{
		"no mode":                {a, 1},
		"permits":                {a.Permits(2), 2},
		"one permit":             {a.Permits(1), 1},
		"shared":                 {a.Shared(), all},
		"shared when true":       {a.SharedWhen(yes), all},
		"shared when false":      {a.SharedWhen(no), 1},
		"switch":                 {core.Switch(func(form) string { return "x" }, map[string]core.Key[form]{"x": a.Permits(2)}), 2},
		"all":                    {core.All(a).Permits(2), 2},
		"named permits":          {a.Permits(2).Named("n"), 2},
		"permits named":          {a.Named("n").Permits(2), 2},
		"when permits":           {a.Permits(2).When(yes), 2},
		"permits when":           {a.When(yes).Permits(2), 2},
		"first permits":          {core.First(field("none"), a.Permits(2)), 2},
		"permits first":          {core.First(field("none"), a).Permits(2), 2},
		"permits of the first":   {core.First(field("none").Permits(3), a.Permits(2)), 2},
		"hashed permits":         {a.Permits(2).Hashed(), 2},
		"permits hashed":         {a.Hashed().Permits(2), 2},
		"keyed permits":          {a.Permits(2).HMAC([]byte("s")), 2},
		"described permits":      {a.Permits(2).Describe("d", ""), 2},
		"permits join":           {core.Join(a, a).Permits(2), 2},
		"last permits":           {a.Permits(3).Named("n").Permits(2), 2},
		"last shared":            {a.Permits(3).Shared(), all},
		"permits after shared":   {a.Shared().Permits(3), 3},
		"shared when after both": {a.Shared().Permits(3).SharedWhen(no), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, locks *core.Locker) {
				if got := enterUntilBusy(t, locks, test.key, form{"a": "k"}); got != test.want {
					t.Errorf("%d requests at the same time, want %d", got, test.want)
				}
			})
		})
	}
	if k, err := a.Named("n").Permits(2).Read(form{"a": "k"}); k.Raw() != "n:k" || k.Name() != "n" || err != nil {
		t.Errorf("key %q, name %q, %v", k.Raw(), k.Name(), err)
	}
	_, err := a.Permits(2).Read(form{})
	wantError(t, err, core.ErrNoKey)
	_, err = a.Shared().Read(form{"a": "!skip"})
	wantError(t, err, core.ErrSkip)
}

// A key's own limit counts, whatever the view says.
func TestLimitOfKeyWinsOverView(t *testing.T) {
	t.Parallel()
	alone := field("a").SharedWhen(func(form) bool { return false })
	for name, test := range map[string]struct {
		view core.Option
		key  core.Key[form]
		want int
	}{
		"permits of the view":     {core.WithPermits(3), field("a"), 3},
		"shared view":             {core.WithShared(true), field("a"), 5},
		"permits of the key":      {core.WithPermits(3), field("a").Permits(2), 2},
		"key alone in the view":   {core.WithShared(true), alone, 1},
		"shared key in the view":  {core.WithPermits(3), field("a").Shared(), 5},
		"shared view is switched": {core.WithShared(false), field("a"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, locks *core.Locker) {
				if got := enterUntilBusy(t, locks.With(test.view), test.key, form{"a": "k"}); got != test.want {
					t.Errorf("%d requests at the same time, want %d", got, test.want)
				}
			}, core.WithPermits(4))
		})
	}
}

// A view says the same for callers without a Key.
func TestSharedViews(t *testing.T) {
	t.Parallel()
	inBubble(t, testSharedViews, core.WithWait(0))
}

func testSharedViews(t *testing.T, locks *core.Locker) {
	two, readers := locks.With(core.WithPermits(2)), locks.With(core.WithShared(true))

	first, second := lock(t, two, "p"), lock(t, two, "p")
	_, err := two.Lock(t.Context(), "p")
	wantError(t, err, core.ErrBusy)
	wantError(t, errorOf(locks.TryLock(t.Context(), "p")), core.ErrBusy)
	if !first.Shared() || first.Token() == second.Token() {
		t.Errorf("shared %v, tokens %q and %q", first.Shared(), first.Token(), second.Token())
	}
	release(t, first)
	both, err := two.LockAll(t.Context(), []string{"p", "q"})
	noError(t, err)
	noError(t, both.Release(t.Context()))
	release(t, second)

	err = readers.Do(t.Context(), "r", func(context.Context) error {
		return readers.Do(t.Context(), "r", func(context.Context) error {
			_, err := locks.TryLock(t.Context(), "r")
			return err
		})
	})
	wantError(t, err, core.ErrBusy)
	alone := lock(t, locks, "r")
	if alone.Shared() || (*core.Lease)(nil).Shared() {
		t.Error("a lease that excludes all others is shared")
	}
	wantError(t, errorOf(readers.TryLock(t.Context(), "r")), core.ErrBusy)
	release(t, alone)
}

// What shared leases do not combine with is refused at registration, or else by a clear error.
func TestSharedRefusals(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	for want, opts := range map[string][]core.Option{
		"WithPermits: 0 is not from 1 to 999999999":          {core.WithPermits(0)},
		"WithPermits: -1 is not from 1 to 999999999":         {core.WithPermits(-1)},
		"WithPermits: 1000000000 is not from 1 to 999999999": {core.WithPermits(1_000_000_000)},
		"WithPermits: WithFencing needs numbers":             {core.WithPermits(2), core.WithFencing(true)},
		"WithPermits: WithMinHold cannot":                    {core.WithPermits(2), core.WithMinHold(time.Second)},
		"WithShared: WithMinHold cannot":                     {core.WithShared(true), core.WithMinHold(time.Second)},
	} {
		if l, err := core.New(rdb, opts...); l != nil || err == nil || !strings.HasPrefix(err.Error(), "reqlock: "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, opts := range [][]core.Option{
		{core.WithPermits(1), core.WithFencing(true)},
		{core.WithShared(true), core.WithFencing(true)},
		{core.WithPermits(2), core.WithShared(false), core.WithFencing(true), core.WithMinHold(time.Second)},
		{core.WithPermits(999_999_999)},
	} {
		noError(t, errorOf(core.New(rdb, opts...)))
	}

	a := field("a")
	for name, test := range map[string]struct {
		opts []core.Option
		key  core.Key[form]
		want string
	}{
		"fencing":   {[]core.Option{core.WithFencing(true)}, a.Permits(2), "Permits: WithFencing needs numbers"},
		"min hold":  {[]core.Option{core.WithMinHold(time.Second)}, a.Shared(), "Shared: WithMinHold cannot"},
		"need wait": {nil, a.SharedWhen(always), "SharedWhen needs WithWait above 0"},
		"no wait":   {[]core.Option{core.WithWait(0)}, core.First(a.SharedWhen(always)).Named("n"), "SharedWhen needs WithWait above 0"},
	} {
		events := &recorder{}
		locks := newLocker(t, newEmbedded(t), append(test.opts, core.WithObserver(events.record))...)
		err := enter(t.Context(), locks, form{"a": "k"}, test.key)
		wantRefusal(t, err, core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13})
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if refused := events.of(core.Refused); len(refused) != 1 || !errors.Is(refused[0].Err, err) {
			t.Errorf("%s: events %+v", name, events.all())
		}
	}
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		ctx, done, err := core.Enter(t.Context(), locks, form{"a": "k"}, a.SharedWhen(always))
		if lease, ok := core.LeaseFromContext(ctx); !ok || lease.Key() != "k" || err != nil {
			t.Errorf("with a wait: %v", err)
		}
		done()
	}, core.WithWait(time.Second))
}

func always(form) bool { return true }

// An idempotent request has its key alone.
func TestBeginRefusesSharedLocks(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for _, view := range []*core.Locker{locks.With(core.WithPermits(2)), locks.With(core.WithShared(true))} {
		if _, err := view.Begin(t.Context(), "k", nil); err == nil || !strings.Contains(err.Error(), "has its key alone") {
			t.Errorf("Begin on a view: %v", err)
		}
	}
}

package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// enterUntilBusy enters with the key function, at most five times, and returns how many
// requests held the key at the same time.
func enterUntilBusy(t *testing.T, locks *core.Locker, key core.KeyFunc[form], f form) (held int) {
	t.Helper()
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
func TestKeyFunctionsKeepPermits(t *testing.T) {
	t.Parallel()
	const all = 5
	a, plain := field("a"), func(f form) (string, error) { return f["a"], nil }
	yes, no := func(form) bool { return true }, func(form) bool { return false }
	own := func(f form) (core.RequestKey, error) { return core.Permits(2, a)(f) }
	for name, test := range map[string]struct {
		key  core.KeyFunc[form]
		want int
	}{
		"no mode":                 {a, 1},
		"permits":                 {core.Permits(2, a), 2},
		"one permit":              {core.Permits(1, a), 1},
		"shared":                  {core.Shared(a), all},
		"shared when true":        {core.SharedWhen(yes, a), all},
		"shared when false":       {core.SharedWhen(no, a), 1},
		"plain function":          {core.Permits(3, plain), 3},
		"shared plain function":   {core.Shared(plain), all},
		"own function":            {own, 2},
		"named permits":           {core.Named("n", core.Permits(2, a)), 2},
		"permits named":           {core.Permits(2, core.Named("n", a)), 2},
		"when permits":            {core.When(yes, core.Permits(2, a)), 2},
		"permits when":            {core.Permits(2, core.When(yes, a)), 2},
		"first permits":           {core.First(field("none"), core.Permits(2, a)), 2},
		"permits first":           {core.Permits(2, core.First(field("none"), a)), 2},
		"permits of the first":    {core.First(core.Permits(3, field("none")), core.Permits(2, a)), 2},
		"hashed permits":          {core.Hashed(core.Permits(2, a)), 2},
		"permits hashed":          {core.Permits(2, core.Hashed(a)), 2},
		"keyed permits":           {core.Keyed([]byte("s"), core.Permits(2, a)), 2},
		"described permits":       {core.Describe("d", "", core.Permits(2, a)), 2},
		"permits join":            {core.Permits(2, core.Join(a, a)), 2},
		"outermost permits":       {core.Permits(2, core.Named("n", core.Permits(3, a))), 2},
		"outermost shared":        {core.Shared(core.Permits(3, a)), all},
		"permits around shared":   {core.Permits(3, core.Shared(a)), 3},
		"shared when around both": {core.SharedWhen(no, core.Permits(3, core.Shared(a))), 1},
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
	if k, err := core.Permits(2, core.Named("n", a)).Read(form{"a": "k"}); k.Raw() != "n:k" || k.Name() != "n" || err != nil {
		t.Errorf("key %q, name %q, %v", k.Raw(), k.Name(), err)
	}
	_, err := core.Permits(2, a).Read(form{})
	wantError(t, err, core.ErrNoKey)
	_, err = core.Shared(a).Read(form{"a": "!skip"})
	wantError(t, err, core.ErrSkip)
}

// A key's own limit counts, whatever the view says.
func TestLimitOfKeyWinsOverView(t *testing.T) {
	t.Parallel()
	alone := core.SharedWhen(func(form) bool { return false }, field("a"))
	for name, test := range map[string]struct {
		view core.Option
		key  core.KeyFunc[form]
		want int
	}{
		"permits of the view":     {core.WithPermits(3), field("a"), 3},
		"shared view":             {core.WithShared(true), field("a"), 5},
		"permits of the key":      {core.WithPermits(3), core.Permits(2, field("a")), 2},
		"key alone in the view":   {core.WithShared(true), alone, 1},
		"shared key in the view":  {core.WithPermits(3), core.Shared(field("a")), 5},
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

// A view says the same for callers without a key function.
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
		key  core.KeyFunc[form]
		want string
	}{
		"fencing":   {[]core.Option{core.WithFencing(true)}, core.Permits(2, a), "Permits: WithFencing needs numbers"},
		"min hold":  {[]core.Option{core.WithMinHold(time.Second)}, core.Shared(a), "Shared: WithMinHold cannot"},
		"part":      {nil, core.Join(a, core.Permits(2, a)), "Join: a part has Permits or Shared: write them around Join"},
		"need wait": {nil, needWait(a), "SharedReads needs WithWait above 0"},
		"no wait":   {[]core.Option{core.WithWait(0)}, core.Named("n", needWait(a)), "SharedReads needs WithWait above 0"},
	} {
		events := &recorder{}
		locks := newLocker(t, newEmbedded(t), append(test.opts, core.WithObserver(events.record))...)
		err := enter(t.Context(), locks, form{"a": "k"}, test.key)
		if outcome, ok := core.RefusalOf(err); !ok || outcome != (core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %+v", name, err, outcome)
		}
		if refused := events.of(core.Refused); len(refused) != 1 || !errors.Is(refused[0].Err, err) {
			t.Errorf("%s: events %+v", name, events.all())
		}
	}
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		ctx, done, err := core.Enter(t.Context(), locks, form{"a": "k"}, needWait(a))
		if lease, ok := core.LeaseFromContext(ctx); !ok || lease.Key() != "k" || err != nil {
			t.Errorf("with a wait: %v", err)
		}
		done()
	}, core.WithWait(time.Second))
}

// needWait is a key function that SharedReads of an adapter would return.
func needWait(key core.KeyFunc[form]) core.KeyFunc[form] {
	return func(f form) (core.RequestKey, error) {
		k, err := key(f)
		return k.NeedWait(), err
	}
}

// An idempotent request has its key alone.
func TestBeginRefusesSharedKeys(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for _, view := range []*core.Locker{locks.With(core.WithPermits(2)), locks.With(core.WithShared(true))} {
		if _, err := view.Begin(t.Context(), "k", nil); err == nil || !view.SharesLocks() || !strings.Contains(err.Error(), "has its key alone") {
			t.Errorf("Begin on a view: %v", err)
		}
	}
	key, err := core.Permits(2, field("a")).Read(form{"a": "k"})
	noError(t, err)
	_, err = locks.BeginKey(t.Context(), key.Endpoint("POST", "/"), nil)
	if outcome, _ := core.RefusalOf(err); outcome.Code != "key_error" || !strings.Contains(err.Error(), "Permits: an idempotent request has its key alone") {
		t.Errorf("BeginKey: %v, %+v", err, outcome)
	}
	if locks.SharesLocks() {
		t.Error("a Locker without the options shares its locks")
	}
}

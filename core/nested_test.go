package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An outerEnd is a way to end an outer lease while a nested lease is held.
type outerEnd struct {
	end  func(t *testing.T, locks *core.Locker, rdb *redis.Client, outer *core.Lease) // returns once it has ended, or will
	want []error                                                                      // of the nested lease
}

// outerEnds returns all ways to end a lease.
func outerEnds() map[string]outerEnd {
	return map[string]outerEnd{
		"released": {func(t *testing.T, _ *core.Locker, _ *redis.Client, outer *core.Lease) {
			t.Helper()
			release(t, outer)
		}, []error{core.ErrLost}},
		"lost": {func(t *testing.T, _ *core.Locker, rdb *redis.Client, outer *core.Lease) {
			t.Helper()
			redistest.Lose(t, rdb, "the outer lease is lost", func() bool { return outer.Context().Err() != nil }, "reqlock:k")
		}, []error{core.ErrLost}},
		"held too long": {
			func(*testing.T, *core.Locker, *redis.Client, *core.Lease) {}, // WithMaxHold ends it
			[]error{core.ErrMaxHold, core.ErrLost},
		},
		"closed": {func(t *testing.T, locks *core.Locker, _ *redis.Client, _ *core.Lease) {
			t.Helper()
			over, cancel := context.WithCancel(t.Context())
			cancel()
			wantError(t, locks.Close(over), context.Canceled)
		}, []error{core.ErrClosed}},
	}
}

// nestings returns the contexts under which a holder locks its key again.
func nestings() map[string]func(context.Context) context.Context {
	return map[string]func(context.Context) context.Context{
		"the context of the lease": func(ctx context.Context) context.Context { return ctx },
		"WithoutCancel":            context.WithoutCancel,
	}
}

// maxHoldFor returns the WithMaxHold that a row of outerEnds needs. On a busy machine a test may
// take a second to lock the nested leases.
func maxHoldFor(end string) core.Option {
	if end == "held too long" {
		return core.WithMaxHold(time.Second)
	}
	return core.WithMaxHold(0)
}

func TestNestedLeaseEndsWithItsOuterLease(t *testing.T) {
	t.Parallel()
	for end, row := range outerEnds() {
		for nesting, nest := range nestings() {
			t.Run(end+", "+nesting, func(t *testing.T) {
				t.Parallel()
				rdb := newEmbedded(t)
				locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
				outer := lock(t, locks.With(maxHoldFor(end)), "k")
				inner, err := locks.Lock(nest(outer.Context()), "k")
				noError(t, err)
				deep, err := locks.Lock(nest(inner.Context()), "k")
				noError(t, err)
				row.end(t, locks, rdb, outer)
				for name, lease := range map[string]*core.Lease{"inner": inner, "inner of inner": deep} {
					suite.Eventually(t, "the context of the "+name+" ends", func() bool { return lease.Context().Err() != nil })
					wantError(t, context.Cause(lease.Context()), row.want...)
					wantError(t, lease.Extend(t.Context(), time.Second), row.want...)
					for range 2 {
						wantError(t, lease.Release(t.Context()), row.want...)
					}
				}
			})
		}
	}
}

func TestNestedDoReportsTheEndOfTheOuterLease(t *testing.T) {
	t.Parallel()
	for end, row := range outerEnds() {
		for nesting, nest := range nestings() {
			for _, keys := range [][]string{{"k"}, {"k", "another"}} {
				t.Run(fmt.Sprint(end, ", ", nesting, ", ", len(keys)), func(t *testing.T) {
					t.Parallel()
					rdb := newEmbedded(t)
					locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
					outer := lock(t, locks.With(maxHoldFor(end)), "k")
					own := errors.New("own")
					err := locks.DoAll(nest(outer.Context()), keys, func(ctx context.Context) error {
						row.end(t, locks, rdb, outer)
						suite.Eventually(t, "the context of fn ends", func() bool { return ctx.Err() != nil })
						wantError(t, context.Cause(ctx), row.want...)
						return own
					})
					wantError(t, err, append(row.want, own)...)
				})
			}
		}
	}
}

func TestReleasedNestedLeaseIsNotLost(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	outer := lock(t, locks, "k")
	inner, err := locks.Lock(outer.Context(), "k")
	noError(t, err)
	release(t, inner)
	if cause := context.Cause(inner.Context()); !errors.Is(cause, context.Canceled) || errors.Is(cause, core.ErrLost) {
		t.Errorf("the cause of its context is %v", cause)
	}
	wantError(t, inner.Extend(t.Context(), time.Second), core.ErrLost) // as on every released lease
	noError(t, outer.Context().Err())
	if err := locks.Do(outer.Context(), "k", func(context.Context) error { return nil }); err != nil {
		t.Errorf("nested Do: %v", err)
	}
	release(t, outer)
	release(t, inner)
}

func TestNestedLeaseOfSeveralKeysEndsWithTheLeaseOfOne(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	err := locks.DoAll(t.Context(), []string{"b", "a"}, func(ctx context.Context) error {
		main, _ := core.FromContext(ctx)
		inner, err := locks.Lock(context.WithoutCancel(ctx), "b")
		if err != nil {
			return err
		}
		release(t, main)
		wantError(t, context.Cause(inner.Context()), core.ErrLost)
		wantError(t, inner.Release(t.Context()), core.ErrLost)
		return nil
	})
	noError(t, err)
}

// The end of the caller's own context is not the end of the outer lease.
func TestNestedLeaseOutlivesTheContextOfItsCaller(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	outer := lock(t, locks, "k")
	ctx, cancel := context.WithCancel(outer.Context())
	inner, err := locks.Lock(ctx, "k")
	noError(t, err)
	cancel()
	if cause := context.Cause(inner.Context()); !errors.Is(cause, context.Canceled) {
		t.Errorf("the cause of its context is %v", cause)
	}
	release(t, inner)
	release(t, outer)
}

// A nested lease has the fencing number of the outer lease. If the outer lease has none, a
// nested lock with WithFencing is refused.
func TestNestedLeaseNeedsTheFenceOfItsOuterLease(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	var log bytes.Buffer
	events := &recorder{}
	plain := newLocker(t, rdb, core.WithObserver(events.record), core.WithObserver(core.SlogObserver(slog.New(slog.NewTextHandler(&log, nil)))))
	fenced := plain.With(core.WithFencing(true), core.WithFailOpen(true), core.WithName("accounts"))
	never := func(context.Context) error {
		t.Error("fn ran without a fencing number")
		return nil
	}
	outer := lock(t, plain, "k")
	ctx := outer.Context()
	attempt := begin(t, plain, "k")
	for name, run := range map[string]func() error{
		"lock": func() error { _, err := fenced.Lock(ctx, "k"); return err },
		"try":  func() error { _, err := fenced.TryLock(ctx, "k"); return err },
		"do":   func() error { return fenced.Do(ctx, "k", never) },
		"all":  func() error { return fenced.DoAll(ctx, []string{"a", "k"}, never) },
		"enter": func() error {
			_, done, err := core.Enter(ctx, fenced, form{"id": "k"}, field("id"))
			done()
			return err
		},
		"begin": func() error { _, err := fenced.Begin(attempt.Lease().Context(), "k", nil); return err },
	} {
		before := len(events.of(core.Refused))
		log.Reset()
		err := run()
		wantError(t, err, core.ErrUpgrade)
		key := "k"
		if name == "begin" {
			key = "i:k"
		}
		refused := events.of(core.Refused)[before:]
		if len(refused) != 1 || !errors.Is(refused[0].Err, core.ErrUpgrade) || refused[0].Key.Raw() != key ||
			refused[0].Name != "accounts" || refused[0].Attempt != (name == "begin") {
			t.Errorf("%s: events %+v", name, refused)
		}
		if !strings.Contains(log.String(), `level=WARN msg="lock refused"`) {
			t.Errorf("%s: logged %q", name, log.String())
		}
		if got, ok := core.OutcomeOf(err); !ok || got != (core.Outcome{Code: "upgrade", HTTP: 500, GRPC: 13}) {
			t.Errorf("%s: %v has the outcome %+v", name, err, got)
		}
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

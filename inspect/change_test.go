package inspect_test

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
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// newObserved returns an Inspector, the events of its changes, and a context in which ada acts.
func newObserved(t *testing.T, rdb redis.UniversalClient) (i *inspect.Inspector, events *[]core.Event, ada context.Context) {
	t.Helper()
	events = new([]core.Event)
	i = newInspector(t, rdb, inspect.WithObserver(func(e core.Event) { *events = append(*events, e) }))
	return i, events, must(core.AsOperator(t.Context(), "ada", "it hangs"))(t)
}

// held says what the leases of a lock are, as a core.Change does.
func held(lock inspect.Lock) string {
	var words []string
	for _, h := range lock.Holders {
		words = append(words, "held by process "+h.Process+", lease "+string(h.Lease))
	}
	return strings.Join(words, "; ")
}

// Whatever an operator changes is one event, which says who, why, and what it was.
func TestEachChangeIsAnEvent(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, other := newLocker(t, rdb, core.WithTTL(time.Minute)), newLocker(t, rdb)
	i, events, ada := newObserved(t, rdb)
	hold := func(key string) inspect.Lock {
		must(locks.Lock(t.Context(), key))(t)
		return must(i.Lock(t.Context(), key))(t)
	}
	for name, test := range map[string]struct {
		kind   core.EventKind
		change func() (key, before string, err error)
		after  string
	}{
		"revoke": {core.OperatorRevoked, func() (key, before string, err error) {
			lock := hold("a")
			return "a", held(lock), i.Revoke(ada, lock)
		}, "revoked"},
		"free now": {core.OperatorFreed, func() (key, before string, err error) {
			lock := hold("b")
			return "b", held(lock), i.FreeNow(ada, lock)
		}, "free"},
		"free now a revoked lock": {core.OperatorFreed, func() (key, before string, err error) {
			if err := i.Revoke(t.Context(), hold("c")); err != nil {
				return "", "", err
			}
			lock := must(i.Lock(t.Context(), "c"))(t)
			return "c", "revoked, lease " + string(lock.Holders[0].Lease), i.FreeNow(ada, lock)
		}, "free"},
		"free now to a waiter": {core.OperatorFreed, func() (key, before string, err error) {
			lock := hold("d")
			next := wait(t, i, other, "d")
			err = i.FreeNow(ada, lock)
			return "d", held(lock), errors.Join(err, suite.Receive(t, "the waiter has the lock", next).Release(t.Context()))
		}, "granted to a waiter"},
		"Redis has a digest of the key": {core.OperatorRevoked, func() (key, before string, err error) {
			lock := hold("half }")
			return "", "key " + lock.Key.String() + ", " + held(lock), i.Revoke(ada, lock)
		}, "revoked"},
		"some have ended": {core.OperatorRevoked, func() (key, before string, err error) {
			permits := core.WithPermits(3)
			leases := []*core.Lease{must(locks.With(permits).Lock(t.Context(), "e"))(t), must(other.With(permits).Lock(t.Context(), "e"))(t)}
			lock := must(i.Lock(t.Context(), "e"))(t)
			return "e", held(lock), errors.Join(leases[0].Release(t.Context()), i.Revoke(ada, lock))
		}, "revoked, 1 of these leases: the others had ended"},
		"resolve": {core.OperatorResolved, func() (key, before string, err error) {
			attempt := must(locks.Begin(t.Context(), "f", nil))(t)
			if err := attempt.Unknown(t.Context(), nil); err != nil {
				return "", "", err
			}
			return "i:f", "unknown", i.Resolve(ada, must(i.Record(t.Context(), "f"))(t), core.Done())
		}, "done"},
	} {
		key, before, err := test.change()
		if err != nil || len(*events) == 0 {
			t.Fatalf("%s: %v, %d events", name, err, len(*events))
		}
		e := (*events)[len(*events)-1]
		if want := (core.Change{By: "ada", Why: "it hangs", Before: before, After: test.after}); e.Change == nil || *e.Change != want {
			t.Errorf("%s: %+v, want %+v", name, e.Change, want)
		}
		if e.Kind != test.kind || e.Key.Raw() != key || e.Err != nil || e.Process != "" || e.Idempotent != (key == "i:f") || e.Shared != (key == "e") || e.Context().Done() != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if len(*events) != 8 {
		t.Errorf("%d events", len(*events))
	}
}

// A panic of one observer reaches the caller after the other observers have the event.
func TestAPanicOfAnObserverHidesNoChange(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	stored := 0
	i := must(inspect.New(rdb, inspect.WithObserver(func(core.Event) { panic("the disk is full") }), inspect.WithObserver(func(core.Event) { stored++ })))(t)
	must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	lock := must(i.Lock(t.Context(), "k"))(t)
	defer func() {
		if caught := recover(); caught != "the disk is full" || stored != 1 {
			t.Errorf("%v, %d events", caught, stored)
		}
	}()
	_ = i.Revoke(t.Context(), lock)
}

// What an operator was refused is no event.
func TestARefusedChangeIsNoEvent(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks := newLocker(t, rdb)
	i, events, ada := newObserved(t, rdb)
	stale := holdAndRelease(t, i, locks)
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	running := must(i.Record(t.Context(), "pay"))(t)
	for want, refused := range map[error][]error{
		inspect.ErrChanged: {i.Revoke(ada, stale), i.FreeNow(ada, stale)},
		inspect.ErrAttempt: {i.Revoke(ada, must(i.Lock(t.Context(), "i:pay"))(t))},
		core.ErrBusy:       {i.Resolve(ada, running, core.Done())},
	} {
		for _, err := range refused {
			wantError(t, err, want)
		}
	}
	if err := attempt.Abort(t.Context()); err != nil {
		t.Error(err)
	}
	if len(*events) != 0 {
		t.Errorf("%+v", *events)
	}
}

// A partition begins with the first script, so that reading before it succeeds.
type partition struct{ begin func() }

func (partition) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p partition) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			p.begin()
		}
		return next(ctx, cmd)
	}
}

func (p partition) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if strings.HasPrefix(cmd.Name(), "eval") {
				p.begin()
			}
		}
		return next(ctx, cmds)
	}
}

// If Redis does not reply, the leases have perhaps ended.
func TestAChangeWithoutAReplyIsAnEvent(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"revoke": "revoked", "free now": "free"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			must(newLocker(t, server.Client(t)).Lock(t.Context(), "k"))(t)
			rdb := proxy.Client(t)
			i, events, ada := newObserved(t, rdb)
			lock := must(i.Lock(t.Context(), "k"))(t)
			ctx, cancel := context.WithCancel(ada)
			defer cancel()
			rdb.AddHook(partition{func() {
				proxy.Partition()
				cancel()
			}})
			err := map[string]func(context.Context, inspect.Lock) error{"revoke": i.Revoke, "free now": i.FreeNow}[name](ctx, lock)
			wantError(t, err, core.ErrUnavailable)
			want := core.Change{By: "ada", Why: "it hangs", Before: held(lock), After: after}
			if got := *events; len(got) != 1 || *got[0].Change != want || !errors.Is(got[0].Err, core.ErrUnavailable) || got[0].Context().Err() != nil {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Without WithObserver, a change is a line of the log, which has no key and no token.
func TestAChangeIsALineOfTheLog(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	rdb := start(t).Client(t)
	i := must(inspect.New(rdb))(t)
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "ada@example.org"))(t)
	lock := must(i.Lock(t.Context(), "ada@example.org"))(t)
	if err := i.Revoke(must(core.AsOperator(t.Context(), "ada", "it hangs"))(t), lock); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(` level=INFO msg="lock operator_revoked" key=%s by=ada why="it hangs" before=%q after=revoked`+"\n", lock.Key, held(lock))
	if got := out.String(); !strings.HasSuffix(got, want) || strings.Contains(got, "example") || strings.Contains(got, lease.Token()) {
		t.Errorf("want %s, logged %s", want, got)
	}
}

// The event of many leases has a bounded length.
func TestAChangeDescribesTwentyLeases(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks := newLocker(t, rdb, core.WithPermits(30), core.WithTTL(time.Minute))
	for range 22 {
		must(locks.Lock(t.Context(), "k"))(t)
	}
	i, events, ada := newObserved(t, rdb)
	if err := i.FreeNow(ada, must(i.Lock(t.Context(), "k"))(t)); err != nil {
		t.Fatal(err)
	}
	if got := (*events)[0].Change.Before; strings.Count(got, "lease ") != 20 || !strings.HasSuffix(got, "; 2 more") {
		t.Error(got)
	}
}

package inspect_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

func TestLocksShowsWhoHoldsAndWhoWaits(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		ctx := t.Context()
		one, other, i := newLocker(t, rdb), newLocker(t, rdb), newInspector(t, rdb)
		held := must(one.With(core.WithFencing(true)).Lock(ctx, "held"))(t)
		wait(t, i, other, "held")
		permits := core.WithPermits(3)
		p1, p2 := must(one.With(permits).Lock(ctx, "permits"))(t), must(other.With(permits).Lock(ctx, "permits"))(t)
		must(one.With(core.WithShared(true)).Lock(ctx, "read"))(t)
		must(one.With(core.WithShared(true)).Lock(ctx, "read"))(t) // one process, two leases or one: both are right
		attempt := must(one.Begin(ctx, "pay", nil))(t)
		hashed := must(one.Lock(ctx, "half }"))(t)
		foreigners(t, rdb)

		page := must(i.Locks(ctx, inspect.Filter{}))(t)
		var names []string
		for _, lock := range page.Locks {
			names = append(names, lock.Key.Name())
		}
		sum := page.Locks[slices.IndexFunc(page.Locks, func(l inspect.Lock) bool { return l.Key.Raw() == "" })].Key.Name()
		want := []string{"reqlock:<script>alert(1)</script>", "reqlock:held", sum, "reqlock:i:pay", "reqlock:permits", "reqlock:read", "reqlock:theirs"}
		slices.Sort(want)
		if !slices.Equal(names, want) || page.Truncated || page.DBSize < len(want) || page.Scanned < len(want) {
			t.Errorf("%q, %+v", names, page.Scan)
		}

		lock := must(i.Lock(ctx, "held"))(t)
		if h := lock.Holders[0]; len(lock.Holders) != 1 || h.Kind != inspect.HolderProcess || h.Process != processOf(held) || h.LeaseLeft <= 0 || h.LeaseLeft > 10*time.Second || h.Permits != 0 {
			t.Errorf("held: %+v", lock)
		}
		if lock.Waiting != 1 || len(lock.Waiters) != 1 || lock.Waiters[0].Process == "" || lock.Waiters[0].Process == processOf(held) || lock.Shared || lock.FenceMax < held.Fence() {
			t.Errorf("held: %+v", lock)
		}
		lock = must(i.Lock(ctx, "permits"))(t)
		processes := []string{lock.Holders[0].Process, lock.Holders[1].Process}
		if !lock.Shared || len(lock.Holders) != 2 || !slices.Contains(processes, processOf(p1)) || !slices.Contains(processes, processOf(p2)) || lock.Holders[0].Permits != 3 {
			t.Errorf("permits: %+v", lock)
		}
		if lock = must(i.Lock(ctx, "read"))(t); !lock.Shared || lock.Holders[0].Permits != 0 || lock.Holders[0].LeaseLeft <= 0 {
			t.Errorf("read: %+v", lock)
		}
		if lock = must(i.Lock(ctx, "i:pay"))(t); !lock.Idempotent || lock.Holders[0].Process != processOf(attempt.Lease()) {
			t.Errorf("pay: %+v", lock)
		}
		if lock = must(i.Lock(ctx, "half }"))(t); lock.Key.Raw() != "" || lock.Key.Name() != sum || lock.Holders[0].Process != processOf(hashed) {
			t.Errorf("a key that is written as a digest: %+v", lock)
		}
		if lock = must(i.Lock(ctx, "theirs"))(t); lock.Holders[0] != (inspect.Holder{Kind: inspect.HolderForeign, LeaseLeft: -1}) {
			t.Errorf("theirs: %+v", lock)
		}
		_, err := i.Lock(ctx, "free")
		wantError(t, err, inspect.ErrNotFound)
		for _, name := range []string{"list", "hash", "set"} {
			_, err := i.Lock(ctx, name)
			wantError(t, err, inspect.ErrNotFound)
		}
		if secrets := fmt.Sprintf("%+v", page) + fmt.Sprintf("%+v", lock); strings.Contains(secrets, held.Token()) {
			t.Error("the list shows a token")
		}
	})
}

// foreigners adds keys of other programs, with the names of reqlock and other types.
func foreigners(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		rdb.Set(ctx, "reqlock:theirs", strings.Repeat("x", 1<<20), 0).Err(),
		rdb.Set(ctx, "reqlock:<script>alert(1)</script>", "their token", time.Hour).Err(),
		rdb.Set(ctx, "{reqlock:theirs}:q", "no list", 0).Err(),
		rdb.Set(ctx, "unrelated", "x", 0).Err(),
		rdb.Set(ctx, "{reqlock:a}:f", "no number", 0).Err(),
		rdb.RPush(ctx, "reqlock:list", "x").Err(),
		rdb.HSet(ctx, "reqlock:hash", "s", "R").Err(),
		rdb.SAdd(ctx, "reqlock:set", "x").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAKeyIsFoundInEachSpelling(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	digests := make(map[string]string)
	locks := newLocker(t, rdb, core.WithPrefix("a*b:"), core.WithObserver(func(e core.Event) {
		if e.Kind == core.Acquired {
			digests[e.Key.Raw()] = e.Key.String()
		}
	}))
	i := newInspector(t, rdb, inspect.WithPrefix("a*b:"))
	must(locks.Lock(t.Context(), "{user}:7"))(t)
	must(locks.Begin(t.Context(), "endpoint", nil))(t)
	must(locks.Lock(t.Context(), "half }"))(t)
	if lock, err := i.Lock(t.Context(), digests["half }"]); err != nil || lock.Key.Raw() != "" || lock.Key.String() != digests["half }"] {
		t.Errorf("the digest of a key that Redis does not have: %+v, %v", lock, err)
	}
	for key, spellings := range map[string][]string{
		"{user}:7":   {"{user}:7", "a*b:{user}:7", "a*b:{user}:7:q", digests["{user}:7"]},
		"i:endpoint": {"endpoint", "i:endpoint", "a*b:i:endpoint", "{a*b:i:endpoint}:r", digests["i:endpoint"]},
	} {
		for _, spelling := range spellings {
			if lock, err := i.Lock(t.Context(), spelling); err != nil || lock.Key.Raw() != key || lock.Key.String() != digests[key] {
				t.Errorf("%q: %+v, %v", spelling, lock, err)
			}
		}
	}
	for _, spelling := range digests {
		if _, err := newInspector(t, rdb).Lock(t.Context(), spelling); err == nil {
			t.Error("a lock of another prefix is found by its digest")
		}
	}
	for _, spelling := range []string{"endpoint", "i:endpoint", "a*b:i:endpoint", "{a*b:i:endpoint}:r", digests["i:endpoint"]} {
		if record, err := i.Record(t.Context(), spelling); err != nil || record.Key.Raw() != "i:endpoint" || record.State != core.StateRunning {
			t.Errorf("%q: %+v, %v", spelling, record, err)
		}
	}
}

func TestAFilterAndALimitShortenTheList(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	one, other := newLocker(t, rdb), newLocker(t, rdb)
	i := newInspector(t, rdb)
	lease := must(one.Lock(t.Context(), "a1"))(t)
	second := must(other.Lock(t.Context(), "a2"))(t)
	must(other.Lock(t.Context(), "b1"))(t)
	wait(t, i, other, "a1")
	for want, filter := range map[string]inspect.Filter{
		"a1 a2":    {Match: "a*"},
		"b1":       {Match: "b?"},
		"a1":       {Process: processOf(lease)},
		"a1 a2 b1": {Process: processOf(second)[:8]}, // it waits for a1
		" a1":      {MinWaiting: 1},
		"":         {Match: "[", MinWaiting: 2},
	} {
		page := must(i.Locks(t.Context(), filter))(t)
		if got := keysOf(page); got != strings.TrimSpace(want) || page.Truncated {
			t.Errorf("%+v: %s", filter, got)
		}
	}
	short := newInspector(t, rdb, inspect.WithLimit(2))
	if page := must(short.Locks(t.Context(), inspect.Filter{}))(t); len(page.Locks) != 2 || !page.Truncated {
		t.Errorf("a limit of 2: %+v", page)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	page, err := i.Locks(ctx, inspect.Filter{})
	wantError(t, err, context.Canceled)
	if !page.Truncated {
		t.Error("a list that was cancelled looks complete")
	}
}

// keysOf returns the keys of the list.
func keysOf(page inspect.Page) string {
	var keys []string
	for _, lock := range page.Locks {
		keys = append(keys, lock.Key.Raw())
	}
	return strings.Join(keys, " ")
}

// Times that no time.Duration has, as those of another program, are as long as one can be. A lease that has
// ended is none.
func TestLeasesOfOtherProgramsStayInRange(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	i, token := newInspector(t, rdb), strings.Repeat("a", 32)+":1"
	for _, err := range []error{
		rdb.Do(t.Context(), "set", "reqlock:k", token, "px", int64(1e17)).Err(),
		rdb.Set(t.Context(), "reqlock:shared", "shared 1 "+token+" 1", time.Hour).Err(),
		rdb.ZAdd(t.Context(), "{reqlock:shared}:s", redis.Z{Score: 1e300, Member: token}, redis.Z{Score: 1, Member: token + "2"}).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"k", "shared"} {
		if lock, err := i.Lock(t.Context(), key); err != nil || len(lock.Holders) != 1 || lock.Holders[0].LeaseLeft != math.MaxInt64 {
			t.Errorf("%s: %+v, %v", key, lock.Holders, err)
		}
	}
}

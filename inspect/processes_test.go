package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The id of a process that has written a record, and of one whose record is a hash of another program.
var (
	writer  = strings.Repeat("abcdef01", 4)
	foreign = strings.Repeat("abcdef02", 4)
)

// writeRecord writes the record of writer, as it was 10 s ago. It had held this lease of the key of the digest for 5 s, and
// awaited it as long.
func writeRecord(t *testing.T, rdb redis.UniversalClient, digest string, lease inspect.LeaseID) {
	t.Helper()
	now, names, ctx := time.Now(), keyspace.New("reqlock:"), t.Context()
	p := registry.Process{
		Service: "<script>", Host: "pod-2", PID: 7, Started: now.Add(-time.Hour), Beat: now.Add(-time.Minute), Held: 30, Waiting: 40,
		Holds: []registry.Hold{{Digest: digest, Lease: string(lease), Name: "<script>", Since: now.Add(-65 * time.Second), Caller: "code", Idempotent: true, Shared: true}},
		Waits: []registry.Wait{{Digest: digest, Name: "<script>", Since: now.Add(-65 * time.Second), Caller: "code", Requests: 4}},
	}
	if err := rdb.HSet(ctx, names.Process(writer), registry.Encode(&p, time.Hour)...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(ctx, names.Process(writer), time.Hour-45*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesShowsWhoIsRegistered(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		ctx, i := t.Context(), newInspector(t, rdb)
		begun := time.Now()
		one := newLocker(t, rdb, core.WithInstance(core.Instance{Service: "payments", Version: "v1.2.3", Host: "pod-1", PID: 42}))
		lease := must(one.Lock(ctx, "held"))(t)
		wait(t, i, newLocker(t, rdb), "held")
		suite.Eventually(t, "a process is registered", func() bool { return len(must(i.Processes(ctx))(t).Processes) == 1 })
		lock := must(i.Lock(ctx, "held"))(t)
		writeRecord(t, rdb, lock.Key.String(), lock.Holders[0].Lease)
		for _, err := range []error{
			rdb.HSet(ctx, "{reqlock:process:"+foreign+"}:p", "holds", "theirs").Err(),
			rdb.HSet(ctx, "{reqlock:process:theirs}:p", "format", "1").Err(),
			rdb.RPush(ctx, "{reqlock:held}:q", foreign+":1", writer+":1", writer+":0042").Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}

		page := must(i.Processes(ctx))(t)
		if len(page.Processes) != 2 || page.Truncated || page.Scanned == 0 {
			t.Fatalf("%+v", page)
		}
		p := page.Processes[1]
		if p.ID != processOf(lease) || p.Service != "payments" || p.Version != "v1.2.3" || p.Host != "pod-1" || p.PID != 42 ||
			p.Started.Before(begun.Add(-time.Second)) || p.Age < 0 || p.Age > registry.TTL || p.Silent() {
			t.Errorf("%+v", p)
		}
		p = page.Processes[0]
		hold, holds := p.Hold(lock.Holders[0].Lease)
		waiting, waits := p.Wait(lock.Key)
		isAbout := func(d, want time.Duration) bool { return d >= want && d < want+time.Minute }
		if p.ID != writer || p.Service != "<script>" || p.Held != 30 || p.Waiting != 40 || !holds || !waits || !isAbout(p.Age, 45*time.Second) || !p.Silent() ||
			!isAbout(hold.For, 50*time.Second) || !isAbout(waiting.For, 50*time.Second) || waiting.Requests != 4 || !hold.Idempotent || !hold.Shared ||
			hold.Name != "<script>" || hold.Caller != "code" || waiting.Name != "<script>" || waiting.Caller != "code" {
			t.Errorf("%+v", p)
		}
		if hold.Digest != lock.Key.String() || hold.Lease != lock.Holders[0].Lease {
			t.Errorf("%+v", hold)
		}
		lock = must(i.Lock(ctx, "held"))(t)
		if len(lock.Processes) != 2 || lock.Processes[0].ID != processOf(lease) || lock.Processes[1].ID != writer {
			t.Errorf("%+v", lock.Processes)
		}
	})
}

// After a process has taken the key again, its record has the hold before that for up to 10 s.
func TestAHoldIsThatOfOneLease(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	i := newInspector(t, rdb)
	seen := make([]inspect.Holder, 2)
	locks := newLocker(t, rdb)
	for n := range seen {
		lease := must(locks.Lock(t.Context(), "k"))(t)
		lock := must(i.Lock(t.Context(), "k"))(t)
		seen[n] = lock.Holders[0]
		writeRecord(t, rdb, lock.Key.String(), seen[0].Lease)
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p := must(i.Process(t.Context(), writer))(t)
	if hold, holds := p.Hold(seen[0].Lease); !holds || hold.Caller != "code" {
		t.Errorf("%+v, %v", hold, holds)
	}
	writeRecord(t, rdb, "0123456789ab", "") // by an earlier version
	p.Holds = append(p.Holds, must(i.Process(t.Context(), writer))(t).Holds...)
	for _, lease := range []inspect.LeaseID{seen[1].Lease, ""} {
		if hold, holds := p.Hold(lease); holds {
			t.Errorf("of another lease: %+v", hold)
		}
	}
}

func TestAProcessIsFoundByItsFirstDigits(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	i := newInspector(t, rdb)
	writeRecord(t, rdb, "0123456789ab", "")
	for _, id := range []string{writer, writer[:8], writer[:4]} {
		if p, err := i.Process(t.Context(), id); err != nil || p.ID != writer {
			t.Errorf("%s: %+v, %v", id, p, err)
		}
	}
	if err := rdb.HSet(t.Context(), "{reqlock:process:"+foreign+"}:p", "holds", "theirs").Err(); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0", 32)
	if err := rdb.Set(t.Context(), "{reqlock:process:"+text+"}:p", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{foreign, foreign[:8], text, text[:4], strings.Repeat("1", 32)} {
		_, err := i.Process(t.Context(), id)
		wantError(t, err, core.ErrNotFound)
	}
	for _, id := range []string{"", "abc", "*", writer + "0", strings.ToUpper(writer)} {
		if p, err := i.Process(t.Context(), id); err == nil || errors.Is(err, core.ErrNotFound) {
			t.Errorf("%q: %+v, %v", id, p, err)
		}
	}
	if err := rdb.HSet(t.Context(), "{reqlock:process:"+foreign+"}:p", "format", "2").Err(); err != nil {
		t.Fatal(err)
	}
	if p, err := i.Process(t.Context(), writer[:7]); err == nil || !strings.Contains(err.Error(), "several") {
		t.Errorf("the digits of two processes: %+v, %v", p, err)
	}
	short := newInspector(t, rdb, inspect.WithLimit(1))
	if page := must(short.Processes(t.Context()))(t); len(page.Processes) != 1 || !page.Truncated {
		t.Errorf("a limit of 1: %+v", page)
	}
}

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

const script = "<script>alert(1)</script>"

// One process holds a lock, and another one waits for it. They share permits. The outcome of a payment is
// unknown. Other programs have keys with odd types and values.
func TestPagesShowWhoHoldsAndWhoWaits(t *testing.T) {
	t.Parallel()
	ctx, rdb := t.Context(), redistest.Reuse(t).Client(t)
	digest, raw := newSite(t, rdb), newSite(t, rdb, console.WithRawKeys())
	one, other := newLocker(t, rdb, core.WithReference(func(context.Context) string { return script })), newLocker(t, rdb)
	held := must(one.With(core.WithFencing(true)).Lock(ctx, script))(t)
	digest.wait(t, other, script)
	permits := core.WithPermits(3)
	must(one.With(permits).Lock(ctx, "permits"))(t)
	second := must(other.With(permits).Lock(ctx, "permits"))(t)
	record := digest.unknown(t, one, "payment of jane")
	running := must(one.Begin(ctx, "running", nil))(t)
	lock, shared, attempt := digest.lock(t, script).Key.String(), digest.lock(t, "permits").Key.String(), record.Key.String()
	register(t, rdb, processOf(held), script, []string{lock, digest.lock(t, "running").Key.String()}, nil)
	register(t, rdb, processOf(second), "withdrawals", []string{shared}, []string{lock})
	foreigners(t, rdb)

	me, them := script+" on pod-7 "+processOf(held)[:8], "withdrawals on pod-7 "+processOf(second)[:8]
	for query, texts := range map[string][]string{
		"": {
			"Locks held 5", "Waiting 4 requests, for 2 locks", "Longest hold 2 h", "Unknown outcomes 1", "Processes 2 registered",
			"The last minute Locks held: 5 Waiting: 4 Unknown outcomes: 1",
			attempt, me + " 1", lock + " account " + me + " 2 h 0 min 1 process 4 requests", shared + " account 2 of 3 permits ", " 2 h 0 min – ", "“–” is not known",
		},
		"?q=" + lock[:5]:                {lock, "1 of 5 match"},
		"?q=withdrawal":                 {shared, "1 of 5 match"},
		"?q=none":                       {"No lock matches"},
		"?q=" + processOf(held)[:12]:    {lock, shared, "3 of 5 match"},
		"?outcomes":                     {"Find out what became of each", "Copies may run again in", attempt, " 23 h 59 min " + me + " 1"},
		"?processes":                    {"Held", me + " 2 0 v1.2.3 4242", them + " 1 4 v1.2.3 4242"},
		"?lock=" + lock:                 {"Name account State held", "Fencing number at most ", me + " 2 h 0 min", "UTC transfer.go:42 ", "Who waits: 1 process", them + " 4 2 h 0 min withdraw.go:7 the lock"},
		"?lock=" + shared:               {"2 leases are out", me + " – – –", "1 of 3 permits", them + " 2 h 0 min"},
		"?attempt=" + attempt:           {"State unknown", "Attempt 1 Attempt id " + record.Attempt.String(), "Process " + me, "First request " + script, "Stored answer none", "Copies may run again in 23 h 59 min", "the runbook . A resolution is final.", "Did the request take effect?", "Its process wrote its record ", " ago: the handler may still charge."},
		"?process=" + processOf(held):   {"Service " + script + " Host pod-7 PID 4242 Version v1.2.3", "It holds 2 leases", lock + " account 2 h 0 min transfer.go:42"},
		"?process=" + processOf(second): {"4 requests wait", lock + " account 4 2 h 0 min withdraw.go:7"},
	} {
		for name, s := range map[string]*site{"digest": digest, "raw": raw} {
			a := get(t, s, query)
			if name == "digest" {
				a.want(t, http.StatusOK, texts...)
			}
			body := a.Body.String()
			if strings.Contains(body, "<script>") || strings.Contains(body, held.Token()) || strings.Contains(body, second.Token()) {
				t.Errorf("%s, %s: the page has a script or a token: %s", name, query, body)
			}
			if name == "digest" && strings.Contains(body, "jane") {
				t.Errorf("%s: the page shows a key: %s", query, body)
			}
		}
	}
	get(t, raw, "").want(t, http.StatusOK, lock+" account "+script, attempt+" i:payment of jane")
	get(t, raw, "?lock="+lock).want(t, http.StatusOK, "Key "+script)
	get(t, raw, "?attempt="+attempt).want(t, http.StatusOK, "Endpoint key payment of jane")
	if err := running.Abort(ctx); err != nil {
		t.Error(err)
	}
}

// A process has released what its record says, and has taken the lock again.
func TestAHoldIsThatOfTheLeaseThatIsShown(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	digest, id := s.lock(t, "k").Key.String(), processOf(lease)
	register(t, rdb, id, "payments", []string{digest}, nil)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(locks.Lock(t.Context(), "k"))(t)
	get(t, s, "").want(t, http.StatusOK, "Longest hold –", "payments on pod-7 "+id[:8]+" ")
	if a := get(t, s, ""); strings.Contains(a.text(), "2 h 0 min") {
		t.Error(a.text())
	}
	get(t, s, "?lock="+digest).want(t, http.StatusOK, "payments on pod-7 "+id[:8]+" – – –")
}

// foreigners adds keys of other programs, with the names of reqlock and other types.
func foreigners(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		rdb.Set(ctx, "reqlock:theirs", strings.Repeat("x", 1<<20), 0).Err(),
		rdb.Set(ctx, "reqlock:\xff\x00", "their token", time.Hour).Err(),
		rdb.Set(ctx, "{reqlock:theirs}:q", "no list", 0).Err(),
		rdb.RPush(ctx, "{reqlock:\xff\x00}:q", "x", "").Err(),
		rdb.HSet(ctx, "{reqlock:process:"+strings.Repeat("0", 32)+"}:p", "holds", "no JSON").Err(),
		rdb.Set(ctx, "{reqlock:i:theirs}:r", "x", 0).Err(),
		rdb.RPush(ctx, "reqlock:list", "x").Err(),
		rdb.HSet(ctx, "reqlock:hash", "s", "R").Err(),
		rdb.SAdd(ctx, "reqlock:set", "x").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	pipe := rdb.Pipeline()
	for n := range 201 {
		pipe.Set(t.Context(), fmt.Sprint("reqlock:", n), "x", time.Hour)
	}
	must(pipe.Exec(t.Context()))(t)
	a := get(t, newSite(t, rdb), "")
	a.want(t, http.StatusOK, "The first 200 of 201", "another program")
	if strings.Contains(a.text(), "not complete") {
		t.Error("the list says that it is not complete")
	}
	i := must(inspect.New(rdb, inspect.WithLimit(3)))(t)
	short := must(console.New(i))(t)
	get(t, short, "").want(t, http.StatusOK, "Locks held 3+", "This list is not complete: it reached its limit (inspect.WithLimit), or took too long.")
	get(t, short, "?lock=0123456789ab").want(t, http.StatusNotFound, "the lists are not complete")
}

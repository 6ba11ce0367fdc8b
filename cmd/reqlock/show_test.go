package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

func TestShowSaysWhoHoldsAndWhoWaits(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	one, other := newLocker(t, rdb), newLocker(t, rdb)
	held := must(one.With(core.WithFencing(true)).Lock(t.Context(), "account:42"))(t)
	wait(t, o, other, "account:42")
	before := lines[lockView](t, o.run(t, "show", "account:42", "--json"))[0]
	register(t, rdb, processOf(held), before)
	register(t, rdb, before.Waiters[0].ID, before)

	for _, spelling := range []string{"account:42", before.Digest, before.Name, "{" + before.Name + "}:q"} {
		r := o.run(t, "show", spelling).want(t, exitOK)
		text := strings.Join(strings.Fields(r.out), " ")
		pattern := `^key: account:42 digest: ` + before.Digest + ` kind: lock waiting: 1 process; in registered processes 4 requests fence: at most [1-9]\d* ` +
			`held by: PROCESS INSTANCE SINCE \(UTC\) HELD LEFT LEASE WHERE ` + processOf(held)[:8] + ` payments "pod-2\\x1b\[31m":7 (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) 1m\d+s \d\S*s ` + before.Holders[0].Lease + ` github.com/acme/bank/transfer.go:42 \(bank.Transfer\)` +
			` waited for by: PROCESS INSTANCE REQUESTS LONGEST WHERE ` + before.Waiters[0].ID[:8] + ` payments "pod-2\\x1b\[31m":7 4 1m\d+s bank/wait.go:7$`
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil || r.problems != "" {
			t.Fatalf("show %s:\n%s\n%s\nwant\n%s", spelling, r.out, r.problems, pattern)
		}
		if since := must(time.Parse(time.DateTime, found[1]))(t); time.Since(since) < 65*time.Second || time.Since(since) > 2*time.Minute {
			t.Errorf("held since %v", since)
		}
	}
	v := lines[lockView](t, o.run(t, "show", "--json", "account:42"))[0]
	h, w := v.Holders[0], v.Waiters[0]
	if v.Key != "account:42" || v.Waiting != 1 || v.FenceMax < held.Fence() || h.Kind != "process" || h.ID != processOf(held) || h.PID != 7 || h.Caller == "" ||
		h.Held < 65_000 || h.Left <= 0 || w.Requests != 4 || w.Waiting <= 0 {
		t.Errorf("%+v", v)
	}
	r := o.run(t, "show", "account:42", "--digest")
	if strings.Contains(r.out, "account:42") || strings.Contains(o.run(t, "show", "account:42", "--digest", "--json").out, "account:42") {
		t.Errorf("--digest shows the key:\n%s", r.out)
	}
	if strings.Contains(o.run(t, "show", "account:42").out+o.run(t, "show", "account:42", "--json").out, held.Token()) {
		t.Error("show prints a token")
	}
	r = o.run(t, "show", "account:43").want(t, exitNotFound, "no such lock")
	if strings.Contains(r.problems, "account:43") {
		t.Errorf("the error has the key: %s", r.problems)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The record of a process that has died says for an hour which one it was.
func TestASilentProcessKeepsItsName(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	held := must(locks.Lock(t.Context(), "k"))(t)
	if err := rdb.RPush(t.Context(), "{reqlock:k}:q", processOf(held)+":9").Err(); err != nil {
		t.Fatal(err)
	}
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v, process := lines[lockView](t, o.run(t, "show", "k", "--json"))[0], processOf(held)
	register(t, rdb, process, v)
	if err := rdb.PExpire(t.Context(), keyspace.New("reqlock:").Process(process), time.Hour-45*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	const name = `payments "pod-2\x1b[31m":7 (silent)`
	for _, args := range []string{"show k", "ls"} {
		o.run(t, strings.Fields(args)...).want(t, exitOK, name)
	}
	o.run(t, "show", "k").want(t, exitOK, "waiting: 1 process\n") // requests of a process that may be dead are not counted
	if v := lines[lockView](t, o.run(t, "ls", "--json"))[0]; !v.Holders[0].Silent || v.Holders[0].PID != 7 {
		t.Errorf("%+v", v)
	}
	o.run(t, "processes").want(t, exitOK, "s (silent)  ")
	seen := lines[recordView](t, o.run(t, "outcomes", "show", "pay", "--json"))[0].Seen
	o.run(t, "resolve", "pay", "not_done", seen).want(t, exitUsage, name+", ran the attempt, and wrote its record ", "s ago: it may still charge")
	found := resultsOf(t, o, exitOK)
	if f := found["processes"]; f.Result != warn || !strings.Contains(f.Detail, "0 processes are registered; 1 of the processes") {
		t.Errorf("%+v", f)
	}
	if f := found["holds"]; f.Detail != "no process reports a hold" {
		t.Errorf("%+v", f)
	}
}

// The last table: an attempt that runs has a lock and a record, and later only a record.
func TestShowHasTheRecordOfARequest(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	attempt := must(newLocker(t, rdb).Begin(t.Context(), "pay", nil))(t)
	v := lines[lockView](t, o.run(t, "show", "pay", "--json"))[0]
	if !v.Idempotent || len(v.Holders) != 1 || v.Record == nil || v.Record.State != "running" || v.Record.EndpointKey != "pay" || v.Record.Attempts != 1 {
		t.Errorf("%+v", v)
	}
	if err := attempt.Commit(t.Context(), []byte("answer")); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{"pay", "i:pay", v.Digest, v.Name} {
		r := o.run(t, "show", spelling).want(t, exitOK, "kind:   idempotent request", "state:        answered", "seen:         ")
		if strings.Contains(r.out, "HOLDER") {
			t.Errorf("show %s:\n%s", spelling, r.out)
		}
	}
}

func TestShowHasEachLeaseOfAPermit(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	permits := core.WithPermits(3)
	one := must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	other := must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	o.run(t, "show", "k").want(t, exitOK, "kind:   shared lock or permits", processOf(one)[:8]+"  silent", processOf(other)[:8]+"  silent")
	o.run(t, "ls").want(t, exitOK, "2 leases")
}

// Each process of a long queue is shown.
func TestShowNamesManyProcesses(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	const waiters = 250
	for n := range waiters {
		id := strings.Repeat("0", 28) + strconv.Itoa(1000+n)
		if err := rdb.RPush(t.Context(), "{reqlock:k}:q", id+":1").Err(); err != nil {
			t.Fatal(err)
		}
		register(t, rdb, id, lockView{})
	}
	r := o.run(t, "show", "k").want(t, exitOK)
	if n := strings.Count(r.out, "payments"); n != waiters || strings.Contains(r.out, "silent") {
		t.Errorf("%d processes are found\n%s", n, r.out)
	}
}

package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A record is kept for its retention, and at least as long as the lease.
func testRecordLivesForItsRetention(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	wantKept := func(key string, retention time.Duration) {
		t.Helper()
		if ttl := rdb.PTTL(t.Context(), servers.companion("i:"+key, "r")).Val(); ttl < retention-30*time.Second || ttl > retention {
			t.Errorf("%s: kept for %v", key, ttl)
		}
	}
	noError(t, begin(t, locks, "day").Commit(t.Context(), nil))
	wantKept("day", 24*time.Hour)
	lease := begin(t, locks.With(core.WithRetention(time.Second), core.WithTTL(time.Minute)), "lease")
	wantKept("lease", time.Minute)
	noError(t, lease.Commit(t.Context(), nil))
	wantKept("lease", time.Minute)
	noError(t, begin(t, locks.With(core.WithRetention(time.Minute)), "short").Commit(t.Context(), []byte("answer")))
	wantKept("short", time.Minute)
	wantReplay(t, locks, "short", "answer")
	if !rdb.PExpire(t.Context(), servers.companion("i:short", "r"), time.Millisecond).Val() { // as if the retention were over
		t.Error("the record is gone")
	}
	suite.Eventually(t, "the record expires", func() bool {
		return rdb.Exists(t.Context(), servers.companion("i:short", "r")).Val() == 0
	})
	_ = begin(t, locks, "short").Abort(t.Context())
}

// An attempt takes one command before the handler and one after it. A replay takes one.
func testRoundTripsOfAnAttempt(t *testing.T, servers *deployment) {
	proxy := servers.Proxy(t)
	locks := servers.newLocker(t, servers.Client(t, redistest.Through(proxy)), withoutResend()...)
	noError(t, begin(t, locks, "{k}warm").Commit(t.Context(), nil)) // loads the scripts on the master of the keys
	wantCommands := func(what string, want int) {
		t.Helper()
		n := 0
		for _, times := range proxy.Commands() {
			n += times
		}
		if n != want {
			t.Errorf("%s: commands %v, want %d", what, proxy.Commands(), want)
		}
		proxy.ResetCommands()
	}
	proxy.ResetCommands()
	a := begin(t, locks, "{k}run")
	wantCommands("begin", 1)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantCommands("commit", 1)
	wantReplay(t, locks, "{k}run", "answer")
	wantCommands("replay", 1)
}

// The caller uses its buffer again after Commit has returned. It may be the memory of a
// *bytes.Buffer from a pool.
func testBufferIsReusedAfterCommit(t *testing.T, servers *deployment) {
	locks, events := servers.observed(t, servers.Client(t), core.WithWait(20*time.Second))
	a := begin(t, locks, "k")
	var duplicate *core.Attempt
	got := start(func() (err error) {
		duplicate, err = locks.Begin(t.Context(), "k", []byte("f"))
		return err
	})
	suite.Eventually(t, "the duplicate waits", func() bool { return len(events.of(core.Waiting)) == 1 })
	buffer := []byte("answer")
	noError(t, a.Commit(t.Context(), buffer))
	noError(t, suite.Receive(t, "the duplicate returns", got))
	copy(buffer, "REUSED")
	if record, _ := duplicate.Replay(); string(record) != "answer" {
		t.Errorf("the duplicate's answer is %q", record)
	}
}

// The ctx of Commit ends before the commit is done. The commit goes on, and must not
// read the buffer.
func testBufferIsReusedDuringCommit(t *testing.T, servers *deployment) {
	proxy := servers.Proxy(t)
	locks, direct := servers.newLocker(t, servers.Client(t, redistest.Through(proxy))), servers.newLocker(t, servers.Client(t))
	a := begin(t, locks, "k")
	proxy.Refuse(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	buffer := []byte("answer")
	wantError(t, a.Commit(ctx, buffer), context.DeadlineExceeded)
	copy(buffer, "REUSED")
	proxy.Refuse(false)
	_ = a.Commit(t.Context(), nil) // waits for the end of the first call
	wantReplay(t, direct, "k", "answer")
}

// Once a request may have taken effect, EndNoEffect does not come back.
func TestNoEffectEnds(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for _, test := range []struct {
		decided []core.Ending
		want    core.Ending
	}{
		{[]core.Ending{core.EndNoEffect}, core.EndNoEffect},
		{[]core.Ending{core.EndUndecided, core.EndNoEffect}, core.EndNoEffect},
		{[]core.Ending{core.EndAbort, core.EndNoEffect}, core.EndNoEffect},
		{[]core.Ending{core.EndNoEffect, core.EndNoEffect}, core.EndNoEffect},
		{[]core.Ending{core.EndNoEffect, core.EndUndecided}, core.EndUndecided},
		{[]core.Ending{core.EndNoEffect, core.EndUndecided, core.EndNoEffect}, core.EndUndecided},
		{[]core.Ending{core.EndNoEffect, core.EndCommit, core.EndNoEffect}, core.EndUndecided},
		{[]core.Ending{core.EndNoEffect, core.EndAbort, core.EndUndecided, core.EndNoEffect}, core.EndUndecided},
		{[]core.Ending{core.EndNoEffect, core.EndUnknown, core.EndNoEffect}, core.EndUndecided},
		{[]core.Ending{core.EndUnknown, core.EndNoEffect}, core.EndUndecided},
		{[]core.Ending{core.EndNoEffect, core.EndUndecided, core.EndAbort}, core.EndAbort},
	} {
		attempt, err := locks.Begin(t.Context(), "k", nil)
		noError(t, err)
		for _, decided := range test.decided {
			attempt.Decide(decided)
		}
		if got := core.Ending(bridge.Decision(attempt)); got != test.want {
			t.Errorf("%v: %v, want %v", test.decided, got, test.want)
		}
		noError(t, attempt.Abort(t.Context()))
	}
}

// The answer to a damaged record is 409. The handler never runs.
func testDamagedRecord(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	for name, fields := range map[string]map[string]string{
		"an unknown state":       {"s": "X", "t": "other:1", "f": "f", "n": "1"},
		"a hash":                 {"s": "D", "t": "other:1", "f": "f", "p": "answer", storetest.AnyHash: "x"},
		"running, and no token":  {"s": "R", "f": "f", "n": "1"},
		"running, and no number": {"s": "R", "t": "other:1", "f": "f"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.PutRecord(t.Context(), rdb, servers.companion("i:"+name, "r"), fields, time.Hour)
			a, err := locks.Begin(t.Context(), name, []byte("f"))
			if err == nil {
				t.Fatalf("attempt %d runs", a.Number())
			}
			if refusal, _ := core.RefusalOf(err); refusal.HTTP != 409 {
				t.Errorf("answered %d %s: %v", refusal.HTTP, refusal.Code, err)
			}
		})
	}
}

// Renewals keep the record for as long as the attempt runs. If the attempt dies then, its
// outcome is unknown, and WithRerunUnknown does not let another attempt run.
func testAttemptOutlivesRetention(t *testing.T, servers *deployment) {
	var events recorder
	const retention, left = time.Minute, 20 * time.Second
	opts := []core.Option{core.WithRetention(retention), core.WithTTL(time.Second), core.WithWait(20 * time.Second)}
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, append(opts, core.WithObserver(events.record))...)
	begin(t, locks, "dies") // never ended
	ends := begin(t, locks, "ends")
	for _, key := range []string{"i:dies", "i:ends"} { // as if most of the retention were over
		if !rdb.PExpire(t.Context(), servers.companion(key, "r"), left).Val() {
			t.Errorf("%s has no record", key)
		}
		suite.Eventually(t, "a renewal keeps the record for its retention", func() bool {
			return rdb.PTTL(t.Context(), servers.companion(key, "r")).Val() > left
		})
	}
	other := servers.newLocker(t, servers.Client(t), opts...)
	wantError(t, errorOf(other.Begin(t.Context(), "ends", []byte("g"))), core.ErrMismatch)
	noError(t, ends.Commit(t.Context(), []byte("answer")))
	if n := len(events.of(core.Restored)); n != 0 {
		t.Error("the observer received Restored, but the record was not lost")
	}
	wantReplay(t, other, "ends", "answer")
	ended := endedContext()
	_ = locks.Close(ended) // as the death of the process
	wantError(t, errorOf(other.Begin(t.Context(), "dies", []byte("f"))), core.ErrOutcomeUnknown)
}

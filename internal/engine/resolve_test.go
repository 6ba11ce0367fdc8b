package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// An attempt that has lost its lease runs until its holder returns. To the store it
// looks like one that died, but its own process knows that it runs.
func TestResolveWhileAttemptWithLostLeaseRuns(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]Ending{"commit": EndCommit, "abort": EndAbort, "interrupt": EndUnknown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				<-h.Context().Done()
				if status, err := forget(p.engines[0], h.Token()); status != StillRunning || err != nil {
					t.Errorf("while it runs: %v, %v", status, err)
				}
				if outcome, err := p.engines[0].Outcome(t.Context(), "k"); outcome.State != Running || outcome.Attempt != h.Token() || err != nil {
					t.Errorf("outcome while it runs: %+v, %v", outcome, err)
				}
				if record := p.server.record("k"); record.state != 'R' || p.stores[0].count("resolve") != 0 {
					t.Errorf("the record is %c, transitions %v", record.state, p.stores[0].transitions())
				}
				end(t, h, ending)
				synctest.Wait() // the report of an interrupt is noted
				want := map[Ending]ResolveStatus{EndCommit: Changed, EndAbort: NoRecord, EndUnknown: Resolved}[ending]
				if status, err := forget(p.engines[0], h.Token()); status != want || err != nil {
					t.Errorf("after its end: %v, %v", status, err)
				}
				if sent := map[bool]int{false: 1, true: 2}[ending == EndUnknown]; p.stores[0].count("resolve") != sent {
					t.Errorf("transitions %v", p.stores[0].transitions())
				}
				p.checkIdle(t)
			})
		})
	}
}

// A lock that has lost its lease is not an attempt.
func TestResolveWhileLockWithLostLeaseRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		h := hold(t, p.engines[0], request(0))
		p.server.set("k", "", 0)
		<-h.Context().Done()
		p.stores[0].before.set(func(transition string, r storetest.AnyRequest) error {
			if transition == "resolve" && r.Bound != bound {
				t.Errorf("the command may take %v", r.Bound)
			}
			return nil
		})
		if status, err := forget(p.engines[0], "dead:1"); status != Resolved || err != nil {
			t.Errorf("%v, %v", status, err)
		}
		if record := p.server.record("k"); record.state != 'A' {
			t.Errorf("the record is %c", record.state)
		}
		h.BeginRelease()
		synctest.Wait()
		p.checkIdle(t)
	})
}

// A late commit without a reply may still be applied.
func TestResolveDuringLateCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "", 0)
		<-h.Context().Done()
		failsFor(p.stores[0], time.Second, "commit")
		committed := make(chan struct{})
		go func() {
			defer close(committed)
			_, _ = h.End(context.Background(), EndCommit, answerOf(h))
		}()
		synctest.Wait()
		if status, err := forget(p.engines[0], h.Token()); status != StillRunning || err != nil {
			t.Errorf("%v, %v", status, err)
		}
		<-committed
		if record := p.server.record("k"); record.state != 'D' {
			t.Errorf("the record is %c", record.state)
		}
		p.checkIdle(t)
	})
}

// The key of an attempt has expired while its commit gets no reply. The process knows that the
// request was done.
func TestResolveDuringCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := attempt("f", 0)
		r.TTL = time.Second
		h := hold(t, p.engines[0], r)
		failsFor(p.stores[0], 1800*time.Millisecond, "commit")
		committed := make(chan struct{})
		go func() {
			defer close(committed)
			end(t, h, EndCommit)
		}()
		time.Sleep(1500 * time.Millisecond) // the key has expired
		if status, err := forget(p.engines[0], h.Token()); status != StillRunning || err != nil {
			t.Errorf("forget: %v, %v", status, err)
		}
		if outcome, err := p.engines[0].Outcome(t.Context(), "k"); outcome.State != Running || err != nil {
			t.Errorf("outcome: %+v, %v", outcome, err)
		}
		<-committed
		if record := p.server.record("k"); record.state != 'D' {
			t.Errorf("the record is %c", record.state)
		}
		p.checkIdle(t)
	})
}

// The record of an attempt that another process has resolved is no longer that of the
// attempt. Its late commit is refused.
func TestLateCommitAfterResolveIsLost(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]ResolveRequest{
		"done":     {Resolution: ResolveDone},
		"answered": {Resolution: ResolveAnswered, Record: []byte("the operator's")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				<-h.Context().Done()
				outcome, err := p.engines[1].Outcome(t.Context(), "k")
				if outcome.State != Unknown || outcome.Number != 1 || err != nil {
					t.Fatalf("%+v, %v", outcome, err)
				}
				r.Key, r.Seen = "k", outcome.Attempt
				if status, err := p.engines[1].Resolve(t.Context(), r); status != Resolved || err != nil {
					t.Fatalf("%v, %v", status, err)
				}
				if loss, err := h.End(t.Context(), EndCommit, []byte("late")); loss != Taken || err != nil {
					t.Errorf("late commit: %v, %v", loss, err)
				}
				if refusal := refused(t, p.engines[0], attempt("f", 0)); string(refusal.Record) != string(r.Record) {
					t.Errorf("%v with %q", refusal.Reason, refusal.Record)
				}
				p.checkIdle(t)
			})
		})
	}
}

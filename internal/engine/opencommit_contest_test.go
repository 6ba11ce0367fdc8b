package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The commit of an attempt that has lost its lease is open, and another attempt has run, as this
// process knows. No copy gets the answer of the open commit: the store may have the other answer.
func TestNoCopyGetsContestedAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		recordLost, first bool // first: the other has committed before
		process           int  // of the other attempt
	}{
		"the other commits afterwards":                           {false, false, 0},
		"the other commits afterwards, and the record is lost":   {true, false, 0},
		"the other commits before":                               {false, true, 0},
		"the other commits before, and the record is lost":       {true, true, 0},
		"the other runs elsewhere, and a copy knows":             {false, false, 1},
		"the other has run elsewhere, and a copy got its answer": {false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				r := attempt("f", 0)
				r.Attempt.Rerun = true
				lost := hold(t, p.engines[0], r)
				p.server.set("k", "", 0)
				if test.recordLost {
					p.server.setRecord("k", fakeRecord{})
				}
				<-lost.Context().Done()
				other := hold(t, p.engines[test.process], r)
				if test.first {
					end(t, other, EndCommit)
				}
				if test.first || test.process == 1 {
					_ = refused(t, p.engines[0], r)
				}
				back := openCommitOf(t, p, lost, EndCommit)
				if !test.first {
					if refusal := refused(t, p.engines[0], r); refusal.Reason != Unavailable {
						t.Errorf("a copy while the other runs: %v", refusal.Reason)
					}
					back()
					end(t, other, EndCommit)
				}
				if refusal := refused(t, p.engines[0], r); refusal.Reason != Unavailable {
					t.Errorf("a copy: %v, %q", refusal.Reason, refusal.Record)
				}
				back()
				if test.first || test.process == 1 {
					time.Sleep(2 * maxOpenPause)
				} else {
					time.Sleep(time.Millisecond) // the commit of the other sends it
				}
				if late := lateResult(t, p.events[0]); late.Loss != Taken {
					t.Errorf("late: %+v", late)
				}
				if refusal := refused(t, p.engines[0], r); string(refusal.Record) != string(p.server.record("k").answer) {
					t.Errorf("a copy of the stored request: %v, %q", refusal.Reason, refusal.Record)
				}
				p.checkIdle(t)
			})
		})
	}
}

// The store has lost its data. A copy that waited has begun an attempt, and the reply was lost: the
// attempt is aborted, and does not run. The commit waits for that, so the store accepts it.
func TestOpenCommitWaitsForAbort(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"a short outage": time.Second, "longer than an abort is retried": 2 * abortTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, waiting := newProcesses(1), &callers{}
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				p.server.setRecord("k", fakeRecord{})
				noReply := &store.Fault{Temporary: true, Unknown: true, Err: errNoCommitReply}
				p.stores[0].after.set(func(string, storetest.AnyRequest) error { return noReply })
				p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
					if transition != "begin" && transition != "renew" {
						return noReply
					}
					return nil
				})
				copies := attempt("f", WaitForever)
				copies.Attempt.Rerun = true
				waiting.join(t, p.engines[0], 1, copies)
				<-h.Context().Done()
				time.Sleep(time.Second) // the attempt has begun
				if got := p.server.record("k"); got.state != 'R' || got.token == h.Token() {
					t.Fatalf("the record: %+v", got)
				}
				if _, err := h.End(t.Context(), EndCommit, answerOf(h)); err == nil {
					t.Error("the commit was accepted")
				}
				time.Sleep(away)
				p.stores[0].after.set(nil)
				commits := p.stores[0].begunCount("commit")
				p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
					if transition == "abort" {
						return noReply
					}
					return nil
				})
				time.Sleep(2 * maxOpenPause)
				if n := p.stores[0].begunCount("commit"); n != commits {
					t.Error("the commit was sent before the abort")
				}
				p.stores[0].before.set(nil)
				time.Sleep(2 * maxOpenPause)
				if late := lateResult(t, p.events[0]); late.Err != nil || late.Loss != NotLost {
					t.Errorf("late: %+v", late)
				}
				if got := p.server.record("k"); got.state != 'D' || string(got.answer) != string(answerOf(h)) {
					t.Errorf("the record: %+v", got)
				}
				p.checkIdle(t)
			})
		})
	}
}

// An attempt that had lost its lease ran beside the next one, and ended without an answer in the
// store. So the store takes the answer of the next one. While that is open, copies get it.
func TestCopiesGetAnswerAfterContest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending     Ending
		recordLost bool // the store takes the first answer, and refuses the second one
		open       bool // the first commit was open for a while
		want       Reason
	}{
		"the first one was aborted":                     {EndAbort, false, false, Done},
		"the first one was interrupted":                 {EndUnknown, false, false, Done},
		"the commit of the first one was refused":       {EndCommit, false, false, Done},
		"the commit of the first one was accepted":      {EndCommit, true, false, Unavailable},
		"the open commit of the first one was accepted": {EndCommit, true, true, Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				r := attempt("f", 0)
				r.Attempt.Rerun = true
				first := hold(t, p.engines[0], r)
				p.server.set("k", "", 0)
				<-first.Context().Done()
				second := hold(t, p.engines[0], r)
				if test.recordLost {
					p.server.set("k", "", 0)
					p.server.setRecord("k", fakeRecord{})
				}
				if test.open {
					back := openCommitOf(t, p, first, test.ending)
					back()
				} else {
					_, _ = first.End(t.Context(), test.ending, answerOf(first))
				}
				if time.Sleep(10 * time.Second); p.engines[0].open.count.Load() > 0 {
					t.Error("the first commit is open")
				}
				back := openCommitOf(t, p, second, EndCommit)
				refusal := refused(t, p.engines[0], r)
				if refusal.Reason != test.want || test.want == Done && string(refusal.Record) != string(answerOf(second)) {
					t.Errorf("a copy: %v, %q", refusal.Reason, refusal.Record)
				}
				back()
				time.Sleep(2 * maxOpenPause)
				if state := p.server.record("k").state; state != 'D' {
					t.Errorf("the record is %c", state)
				}
				p.checkIdle(t)
			})
		})
	}
}

// A copy has begun while its caller left, so it is aborted and does not run. The store refuses the commit
// of the attempt before it, which has lost its lease. So no copy gets that answer.
func TestNoCopyGetsAnswerAfterAbortedRerun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		lost := hold(t, p.engines[0], r)
		p.server.set("k", "", 0)
		<-lost.Context().Done()
		p.stores[0].after.set(delays(50*time.Millisecond, "begin"))
		leaving(t, p.engines[0], r)()
		sleep(time.Second)
		back := openCommitOf(t, p, lost, EndCommit)
		refuses(t, p.engines[0], r, Unavailable)
		back()
		time.Sleep(2 * maxOpenPause)
		if late := lateResult(t, p.events[0]); late.Loss != Taken {
			t.Errorf("late: %+v", late)
		}
		p.checkIdle(t)
	})
}

// The store has lost its data, and a rerun has begun beside the attempt of the open commit. The commit
// waits for the rerun, which is aborted. So the store accepts the commit.
func TestOpenCommitWaitsForRerun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		lost := hold(t, p.engines[0], r)
		p.server.set("k", "", 0)
		p.server.setRecord("k", fakeRecord{})
		<-lost.Context().Done()
		rerun := hold(t, p.engines[0], r)
		openCommitOf(t, p, lost, EndCommit)()
		time.Sleep(2 * maxOpenPause)
		end(t, rerun, EndAbort)
		time.Sleep(2 * maxOpenPause)
		if late := lateResult(t, p.events[0]); late.Loss != NotLost || late.Err != nil {
			t.Errorf("late: %+v", late)
		}
		p.checkIdle(t)
	})
}

package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The commit of an attempt that has lost its lease is open, and another attempt has run, as this
// process knows. No copy gets the answer of the open commit: the store may have the other answer.
func TestNoCopyGetsContestedAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rerun, first bool // first: the other has committed before
		process      int  // of the other attempt
	}{
		"the other commits afterwards":                           {true, false, 0},
		"the other commits afterwards, and the record is lost":   {false, false, 0},
		"the other commits before":                               {true, true, 0},
		"the other commits before, and the record is lost":       {false, true, 0},
		"the other runs elsewhere, and a copy knows":             {true, false, 1},
		"the other has run elsewhere, and a copy got its answer": {true, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				r := attempt("f", 0)
				r.Attempt.Rerun = test.rerun
				lost := hold(t, p.engines[0], r)
				p.server.set("k", "", 0)
				if !test.rerun {
					p.server.setRecord("k", fakeRecord{})
				}
				<-lost.Context().Done()
				other := hold(t, p.engines[test.process], r)
				if test.first {
					end(t, other, Commit)
				}
				if test.first || test.process == 1 {
					_ = refused(t, p.engines[0], r)
				}
				back := openCommitOf(t, p, lost, Commit)
				if !test.first {
					if refusal := refused(t, p.engines[0], r); refusal.Reason != Unavailable {
						t.Errorf("a copy while the other runs: %v", refusal.Reason)
					}
					back()
					end(t, other, Commit)
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

package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The store comes back empty while the handler runs, and its process learns that. No copy runs beside
// the handler in this process: a copy is refused, or waits for the answer.
func TestNoCopyRunsBesideHandlerThatLostItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, before, after := newProcesses(1), &callers{}, &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		before.join(t, p.engines[0], 2, attempt("f", WaitForever))
		p.server.set("k", "", 0)
		p.server.setRecord("k", fakeRecord{})
		<-h.Context().Done()
		after.join(t, p.engines[0], 2, attempt("f", WaitForever))
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Busy {
			t.Errorf("a copy that may not wait: %v", refusal.Reason)
		}
		if refusal := refused(t, p.engines[0], attempt("f", time.Second)); refusal.Reason != TimedOut {
			t.Errorf("a copy that waits for a second: %v", refusal.Reason)
		}
		time.Sleep(time.Minute)
		end(t, h, Commit)
		before.check(t, 0, 2, h.Token())
		after.check(t, 0, 2, h.Token())
		p.checkIdle(t)
	})
}

// The handler returns without an answer. Then a copy that waits runs.
func TestCopyRunsAfterHandlerThatLostItsLease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending Ending
		wait   time.Duration
		ran    int
	}{
		"aborted, a copy waits":       {Abort, WaitForever, 1},
		"interrupted, a copy waits":   {Interrupt, WaitForever, 1},
		"aborted, the copy has left":  {Abort, time.Second, 0},
		"interrupted, it has left":    {Interrupt, time.Second, 0},
		"done, and the copy has left": {Commit, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(1), &callers{ending: Commit}
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				p.server.setRecord("k", fakeRecord{})
				<-h.Context().Done()
				c.join(t, p.engines[0], 1, attempt("f", test.wait))
				time.Sleep(time.Minute)
				end(t, h, test.ending)
				time.Sleep(2 * time.Second)
				c.check(t, test.ran, 0, "")
				p.checkIdle(t)
			})
		})
	}
}

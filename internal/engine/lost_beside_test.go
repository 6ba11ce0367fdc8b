package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The store comes back empty while the handler runs, and its process learns that, or the lease is not
// renewed. No copy runs beside the handler in this process: a copy is refused, or waits for the answer.
func TestNoCopyRunsBesideHandlerThatLostItsLease(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(p *processes){
		"the store comes back empty": func(p *processes) {
			p.server.set("k", "", 0)
			p.server.setRecord("k", fakeRecord{})
		},
		"renewals fail": func(p *processes) { failsFor(p.stores[0], 12*time.Second, "renew") },
	} {
		row(t, name, func(t *testing.T) {
			p, before, after := newProcesses(1), &callers{}, &callers{}
			h := hold(t, p.engines[0], attempt("f", 0))
			before.join(t, p.engines[0], 2, attempt("f", WaitForever))
			lose(p)
			<-h.Context().Done()
			after.join(t, p.engines[0], 2, attempt("f", WaitForever))
			refuses(t, p.engines[0], attempt("f", 0), Busy)
			refuses(t, p.engines[0], attempt("f", time.Second), TimedOut)
			time.Sleep(time.Minute)
			end(t, h, EndCommit)
			before.check(t, 0, 2, h.Token())
			after.check(t, 0, 2, h.Token())
			p.checkIdle(t)
		})
	}
}

// The handler returns without an answer. Then a copy that waits runs.
func TestCopyRunsAfterHandlerThatLostItsLease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending Ending
		wait   time.Duration
		ran    int
	}{
		"aborted, a copy waits":       {EndAbort, WaitForever, 1},
		"interrupted, a copy waits":   {EndUnknown, WaitForever, 1},
		"aborted, the copy has left":  {EndAbort, time.Second, 0},
		"interrupted, it has left":    {EndUnknown, time.Second, 0},
		"done, and the copy has left": {EndCommit, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, c := newProcesses(1), &callers{ending: EndCommit}
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

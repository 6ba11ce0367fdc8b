package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// An attempt that has lost its lease runs until its holder returns. To the store it
// looks like one that died, but its own process knows that it runs.
func TestResolveWhileAttemptWithLostLeaseRuns(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]Ending{"commit": Commit, "abort": Abort, "interrupt": Interrupt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				<-h.Context().Done()
				if running, err := p.engines[0].Resolve(t.Context(), "k"); !running || err != nil {
					t.Errorf("while it runs: %v, %v", running, err)
				}
				if record := p.server.record("k"); record.state != 'R' || p.stores[0].count("resolve") != 0 {
					t.Errorf("the record is %c, transitions %v", record.state, p.stores[0].transitions())
				}
				end(t, h, ending)
				if running, err := p.engines[0].Resolve(t.Context(), "k"); running || err != nil {
					t.Errorf("after its end: %v, %v", running, err)
				}
				if p.stores[0].count("resolve") != 1 {
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
		if running, err := p.engines[0].Resolve(t.Context(), "k"); running || err != nil {
			t.Errorf("%v, %v", running, err)
		}
		if record := p.server.record("k"); record.state != 0 {
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
			_, _ = h.End(context.Background(), Commit, answerOf(h))
		}()
		synctest.Wait()
		if running, err := p.engines[0].Resolve(t.Context(), "k"); !running || err != nil {
			t.Errorf("%v, %v", running, err)
		}
		<-committed
		if record := p.server.record("k"); record.state != 'D' {
			t.Errorf("the record is %c", record.state)
		}
		p.checkIdle(t)
	})
}

package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudgetByStoreQueue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ready := make(chan struct{})
	close(ready)
	tests := []struct {
		name    string
		ready   chan struct{}
		told    time.Time
		waiting int
		before  bool
		want    bool
	}{
		{"no process waits", ready, now.Add(-time.Second), 0, false, true},
		{"no process waits, not listening", nil, now.Add(-time.Second), 0, false, false},
		{"no process waits, subscription not confirmed", make(chan struct{}), now.Add(-time.Second), 0, false, false},
		{"no process waited, hint since", ready, now.Add(time.Second), 0, false, false},
		{"a process waits", ready, now.Add(-time.Second), 1, true, false},
		{"not known", ready, now.Add(-time.Second), -1, false, false},
		{"not known, the old state stays", ready, now.Add(-time.Second), -1, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := &lease{queue: &queue{waitlist: &waitlist{ready: test.ready, lastHint: test.told}}, leaseState: leaseState{budget: budget{unlimited: test.before}}}
			l.noteStoreQueue(test.waiting, now)
			if l.budget.unlimited != test.want {
				t.Errorf("unlimited: %v", l.budget.unlimited)
			}
		})
	}
}

func TestRenewalReportsOtherWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		p.stores[0].hint = func(string, string) {} // its hints are lost
		for range 600 {
			waiting(t, p.engines[0], request(WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		release(t, h)
		time.Sleep(100 * time.Millisecond) // by now the budget is unlimited
		var served time.Time
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { served = time.Now() })
		begun := time.Now()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if took, most := served.Sub(begun), request(0).TTL/3+time.Second; took < time.Second || took > most {
			t.Errorf("the other process was served after %v, want at most %v", took, most)
		}
		p.checkIdle(t)
	})
}

// The hints that arrive while a lease is held say nothing about the place in the
// store's queue that its release takes.
func TestHandOffCostsTwoCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { time.Sleep(100 * time.Millisecond) })
		time.Sleep(100 * time.Millisecond) // the budget is spent
		release(t, h)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := p.stores[0].transitions(); !slices.Equal(got, []string{"take", "release", "enqueue", "release"}) {
			t.Errorf("transitions %v", got)
		}
		p.checkIdle(t)
	})
}

// A lease with a short TTL is passed on for a quarter of its TTL at most.
func TestBudgetEndsWithQuarterOfTTL(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for name, test := range map[string]struct{ ttl, most time.Duration }{
		"a short TTL": {100 * time.Millisecond, 25 * time.Millisecond},
		"a long TTL":  {time.Minute, maxPassTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := budget{begun: begun}
			if b.isSpent(test.ttl, begun.Add(test.most-1)) || !b.isSpent(test.ttl, begun.Add(test.most)) {
				t.Errorf("the budget does not end after %v", test.most)
			}
		})
	}
}

package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsKnownOfTheServersLine(t *testing.T) {
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
		{"nobody waits", ready, now.Add(-time.Second), 0, false, true},
		{"nobody waits, but it does not listen", nil, now.Add(-time.Second), 0, false, false},
		{"nobody waits, but it is not sure to listen", make(chan struct{}), now.Add(-time.Second), 0, false, false},
		{"nobody waited, but it was told since", ready, now.Add(time.Second), 0, false, false},
		{"somebody waits", ready, now.Add(-time.Second), 1, true, false},
		{"not known", ready, now.Add(-time.Second), -1, false, false},
		{"not known, what was known stays", ready, now.Add(-time.Second), -1, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := &lease{queue: &queue{queueState: queueState{ready: test.ready, lastHint: test.told}}, leaseState: leaseState{budget: budget{unlimited: test.before}}}
			l.noteStoreQueue(test.waiting, now)
			if l.budget.unlimited != test.want {
				t.Errorf("unlimited: %v", l.budget.unlimited)
			}
		})
	}
}

func TestARenewalTellsThatOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		p.stores[0].hint = func(string, string) {} // its hints are lost
		for range 600 {
			waiting(t, p.engines[0], request(WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		release(t, h)
		time.Sleep(100 * time.Millisecond) // the lease has no limit by now
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

// What a holder hears while it holds says nothing of the place that it takes
// when it releases.
func TestAHandOffCostsTwoCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		waiting(t, p.engines[0], request(WaitForever), func(*Hold) {})
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { time.Sleep(100 * time.Millisecond) })
		time.Sleep(100 * time.Millisecond) // the budget is over
		release(t, h)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := p.stores[0].transitions(); !slices.Equal(got, []string{"take", "release", "enqueue", "release"}) {
			t.Errorf("transitions %v", got)
		}
		p.checkIdle(t)
	})
}

// A lease with a short TTL is passed for a quarter of the TTL at most.
func TestBudgetEndsWithQuarterOfTTL(t *testing.T) {
	begun := time.Now()
	for name, test := range map[string]struct{ ttl, most time.Duration }{
		"a short TTL": {100 * time.Millisecond, 25 * time.Millisecond},
		"a long TTL":  {time.Minute, maxPassTime},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget{begun: begun}
			if b.isSpent(test.ttl, begun.Add(test.most-1)) || !b.isSpent(test.ttl, begun.Add(test.most)) {
				t.Errorf("the budget does not end after %v", test.most)
			}
		})
	}
}

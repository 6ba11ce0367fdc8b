package waiting

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// The turns of each goroutine in the full tier.
const manyTurns, someTurns = 500, 200

func TestFourProcessesTakeTurns(t *testing.T) {
	for name, fencing := range map[string]bool{"with fencing": true, "without fencing": false} {
		t.Run(name, func(t *testing.T) {
			s := scenario{
				orders: newOrders(10*time.Second, 500*time.Millisecond, fencing, manyTurns),
				checks: basicChecks().withFairness(false).withOrder(),
			}
			if !fencing {
				suite.Full(t, "repeats the test without fencing numbers")
				s.Size.Turns = suite.Size(fewTurns, 100)
				s.checks.without("fences")
			}
			w, h := s.run(t)
			if h.Lost() > 0 || int64(len(h)) != w.total() {
				t.Errorf("%d of %d turns, and %d leases were lost", len(h), w.total(), h.Lost())
			}
			w.wantFewCommands(h)
		})
	}
}

func TestAProcessIsKilled(t *testing.T) {
	checks := basicChecks()
	if runsAlone(t) {
		checks.withFairness(true).withOrder()
	}
	_, h := scenario{
		orders: newOrders(shortTTL, shortTimeout, true, manyTurns), processes: processCount + 2,
		checks: checks,
		meanwhile: func(w *workers) {
			w.until(0.25)
			w.kill(1) // in any state
			w.startOne(processCount, "TestWorker")
			w.until(0.5)
			w.linger(2)
			w.kill(2) // while it holds the lock
			w.startOne(processCount+1, "TestWorker")
		},
	}.run(t)
	holders := 0
	for _, one := range h {
		if one.Killed && one.IsServed() {
			holders++
		}
	}
	if holders == 0 {
		t.Error("no holder was killed")
	}
}

func TestAProcessStandsStill(t *testing.T) {
	isAlone := runsAlone(t)
	for name, test := range map[string]struct {
		stop       func(w *workers)
		inFastTier bool
	}{
		"while it holds": {func(w *workers) { w.stopHolder(1) }, true},
		"in any state":   {func(w *workers) { w.stopForLong(2) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !test.inFastTier {
				suite.Full(t, "mostly repeats the test with a process that waits")
			}
			checks := basicChecks()
			if isAlone {
				checks.withFairness(true)
			}
			long := newOrders(shortTTL, shortTimeout, true, manyTurns)
			long.Size.Turns = max(long.Size.Turns, 150) // the other processes must not finish meanwhile
			scenario{
				orders: long, checks: checks,
				meanwhile: func(w *workers) {
					w.until(0.1)
					test.stop(w)
				},
			}.run(t)
		})
	}
}

// stopHolder stops a process while it holds the key. Afterwards the holder must be
// informed of the loss.
func (w *workers) stopHolder(process int) {
	w.t.Helper()
	row := w.linger(process)
	w.stopForLong(process)
	w.wantLost(row)
}

// wantLost returns when a holder has left the critical section. It must know that its
// lease was lost.
func (w *workers) wantLost(row *turnRow) {
	w.t.Helper()
	w.await("the holder leaves the critical section", func() bool { return row.ended.Load() != 0 })
	if row.lost.Load() == 0 {
		w.t.Error("the holder was not informed that its lease is lost")
	}
}

// stopForLong stops a process for longer than a lease without renewal, and until other
// processes were granted the key.
func (w *workers) stopForLong(process int) {
	w.t.Helper()
	w.stop(process)
	begun, before := time.Now(), w.table.grants()
	w.await("other processes continue", func() bool {
		return time.Since(begun) > w.orders.TTL+w.orders.TTL/2 && w.table.grants() > before
	})
	w.resume(process)
}

// A client that does not follow the protocol overwrites the value of the holder.
func TestTheKeyIsTakenAway(t *testing.T) {
	t.Parallel()
	scenario{
		orders: newOrders(shortTTL, shortTimeout, true, 100), checks: basicChecks(),
		meanwhile: func(w *workers) {
			w.until(0.25)
			w.overwriteKey(1)
		},
	}.run(t)
}

func (w *workers) overwriteKey(process int) {
	w.t.Helper()
	row := w.linger(process)
	w.admin.Set(w.t.Context(), lockName, "foreign", time.Minute)
	w.wantLost(row)
	w.admin.Del(w.t.Context(), lockName)
}

func TestTheSubscriptionsAreCut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		turns int
		cut   func(w *workers) int64
	}{
		"all at once": {manyTurns, func(w *workers) int64 {
			return w.admin.ClientKillByFilter(w.t.Context(), "TYPE", "pubsub").Val()
		}},
		"one at a time": {someTurns, func(w *workers) int64 {
			subscriptions := w.admin.Do(w.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()
			all := clientID.FindAllStringSubmatch(subscriptions, -1)
			if len(all) == 0 {
				return 0
			}
			return w.admin.ClientKillByFilter(w.t.Context(), "ID", all[rand.IntN(len(all))][1]).Val()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cuts := int64(0)
			scenario{
				orders: newOrders(shortTTL, shortTimeout, true, test.turns), checks: basicChecks(),
				meanwhile: func(w *workers) {
					w.repeat(50*time.Millisecond, func() { cuts += test.cut(w) })
				},
			}.run(t)
			t.Logf("%d subscriptions were cut", cuts)
			if cuts < 4 {
				t.Errorf("%d subscriptions were cut", cuts)
			}
		})
	}
}

// clientID matches the ids in CLIENT LIST.
var clientID = regexp.MustCompile(`\bid=(\d+)`)

func TestTheFenceKeyIsDeleted(t *testing.T) {
	t.Parallel()
	deleted := int64(0)
	s := scenario{
		orders: newOrders(shortTTL, shortTimeout, true, someTurns), checks: basicChecks(),
		meanwhile: func(w *workers) {
			w.repeat(5*time.Millisecond, func() { deleted += w.admin.Del(w.t.Context(), fenceName).Val() })
		},
	}
	if suite.IsFull() {
		s.checks.withFairness(false) // in the fast tier too many processes run beside it
	}
	s.run(t)
	t.Logf("the fence key was deleted %d times", deleted)
	if deleted == 0 {
		t.Error("the fence key never existed")
	}
}

// After a loss of data two holders may trust their leases, so exclusion is not checked.
// Their fences tell which holder is the later one.
func TestAllDataIsLost(t *testing.T) {
	t.Parallel()
	scenario{
		orders: newOrders(shortTTL, shortTimeout, true, someTurns), checks: checksAfterLoss(),
		meanwhile: func(w *workers) { w.loseData(0.2, 0.4, 0.6, 0.8) },
	}.run(t)
}

func checksAfterLoss() checks {
	return checks{
		"fences": history.Holds.LeaseFences, "service": func(h history.Holds) []string { return h.Service(now()) },
	}
}

func (w *workers) loseData(fractions ...float64) {
	w.t.Helper()
	for _, fraction := range fractions {
		w.until(fraction)
		err := redistest.EachMaster(w.t.Context(), w.admin, func(master redis.Cmdable) error {
			return master.FlushAll(w.t.Context()).Err()
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

package waiting

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

//faults:row 31
func TestFourProcessesTakeTurns(t *testing.T) {
	for name, fencing := range map[string]bool{"with fencing": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := scenario{orders: full(10*time.Second, 500*time.Millisecond, fencing), checks: inOrder(fairly(plain(), false))}
			if !fencing {
				s.Shape.Turns = fewer(100, 60)
				delete(s.checks, "fence")
			}
			c, h := s.play(t)
			if h.lost() > 0 {
				t.Errorf("%d leases were lost", h.lost())
			}
			if int64(len(h)) != c.total() {
				t.Errorf("%d of %d turns", len(h), c.total())
			}
			c.wantFewCommands(h)
		})
	}
}

//faults:row 31: the dead are passed over
func TestAProcessIsKilled(t *testing.T) {
	_, h := scenario{
		orders: full(shortTTL, shortBound, true), processes: crewSize + 2, checks: inOrder(fairly(plain(), true)),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.kill(1) // wherever it is
			c.enlist(crewSize, "TestWorker")
			c.until(0.5)
			c.lingering(2)
			c.kill(2) // while it holds
			c.enlist(crewSize+1, "TestWorker")
		},
	}.play(t)
	inside := 0
	for _, one := range h {
		if one.killed && one.served() {
			inside++
		}
	}
	if inside == 0 {
		t.Error("nobody was killed inside")
	}
}

//faults:row 14 limit: SIGSTOP while it holds
func TestAProcessStandsStill(t *testing.T) {
	long := full(shortTTL, shortBound, true)
	long.Shape.Turns = max(long.Shape.Turns, 300) // the others must not be done meanwhile
	scenario{
		orders: long, checks: fairly(plain(), true),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.standStillInside(1)
			c.until(0.5)
			c.standStill(2) // wherever it is
		},
	}.play(t)
}

// standStillInside halts a process while it holds the key. It is told afterwards.
func (c *crew) standStillInside(process int) {
	c.t.Helper()
	turn := c.lingering(process)
	c.standStill(process)
	c.wantLost(turn)
}

// wantLost returns when a holder has left, who must know that its lease was lost.
func (c *crew) wantLost(turn *turnRow) {
	c.t.Helper()
	c.await("the holder comes back", func() bool { return turn.ended.Load() != 0 })
	if turn.lost.Load() == 0 {
		c.t.Error("the holder was not told that its lease is lost")
	}
}

// standStill halts a process for longer than its lease can live, and until
// others were granted the key.
func (c *crew) standStill(process int) {
	c.t.Helper()
	c.halt(process)
	begun, others := time.Now(), c.table.grants()
	c.await("others go on", func() bool {
		return time.Since(begun) > c.orders.TTL+c.orders.TTL/2 && c.table.grants() > others
	})
	c.resume(process)
}

// Somebody who follows no rules writes a value of his own over the holder's.
//
//faults:row 26
func TestTheKeyIsTakenAway(t *testing.T) {
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: plain(),
		meanwhile: func(c *crew) {
			c.until(0.25)
			c.takeAway(1)
		},
	}
	s.Shape.Turns = fewer(100, 60)
	s.play(t)
}

// takeAway takes the key from a process while it holds it.
func (c *crew) takeAway(process int) {
	c.t.Helper()
	turn := c.lingering(process)
	c.admin.Set(c.t.Context(), lockName, "foreign", time.Minute)
	c.wantLost(turn)
	c.admin.Del(c.t.Context(), lockName)
}

//faults:row 27: again and again, under load
func TestTheSubscriptionsAreCut(t *testing.T) {
	for name, test := range map[string]struct {
		turns int
		cut   func(c *crew) int64
	}{
		"all at once": {crewTurns, func(c *crew) int64 {
			return c.admin.ClientKillByFilter(c.t.Context(), "TYPE", "pubsub").Val()
		}},
		"one at a time": {200, func(c *crew) int64 {
			listening := c.admin.Do(c.t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").String()
			all := clientID.FindAllStringSubmatch(listening, -1)
			if len(all) == 0 {
				return 0
			}
			return c.admin.ClientKillByFilter(c.t.Context(), "ID", all[rand.IntN(len(all))][1]).Val()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cuts := int64(0)
			s := scenario{
				orders: full(shortTTL, shortBound, true), checks: plain(),
				meanwhile: func(c *crew) {
					c.while(50*time.Millisecond, func() { cuts += test.cut(c) })
				},
			}
			s.Shape.Turns = fewer(test.turns, 60)
			s.play(t)
			t.Logf("%d subscriptions were cut", cuts)
			if cuts < 4 {
				t.Errorf("%d subscriptions were cut", cuts)
			}
		})
	}
}

// clientID finds the ids in a CLIENT LIST.
var clientID = regexp.MustCompile(`\bid=(\d+)`)

func TestTheFenceKeyIsDeleted(t *testing.T) {
	deleted := int64(0)
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: fairly(plain(), false),
		meanwhile: func(c *crew) {
			c.while(5*time.Millisecond, func() { deleted += c.admin.Del(c.t.Context(), fenceName).Val() })
		},
	}
	s.Shape.Turns = fewer(200, 60)
	s.play(t)
	t.Logf("the fence key was deleted %d times", deleted)
	if deleted == 0 {
		t.Error("the fence key was never there")
	}
}

// Data that is lost may let two holders in, who both believe: exclusion is not
// asked for here. Their fences tell who is the later one.
//
//faults:row 16 loss: under load; fences rise, everybody is served
func TestAllDataIsLost(t *testing.T) {
	s := scenario{
		orders: full(shortTTL, shortBound, true), checks: afterLoss(),
		meanwhile: func(c *crew) { c.loseAll(0.2, 0.4, 0.6, 0.8) },
	}
	s.Shape.Turns = fewer(200, 60)
	s.play(t)
}

// afterLoss are the checks that hold where data is lost.
func afterLoss() map[string]func(history) []string {
	return map[string]func(history) []string{
		"fence":    history.leaseFalls,
		"unserved": func(h history) []string { return h.unserved(monotonic()) },
	}
}

// loseAll deletes all data whenever a part of all grants has been made.
func (c *crew) loseAll(parts ...float64) {
	c.t.Helper()
	for _, part := range parts {
		c.until(part)
		err := redistest.EachMaster(c.t.Context(), c.admin, func(master redis.Cmdable) error {
			return master.FlushAll(c.t.Context()).Err()
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

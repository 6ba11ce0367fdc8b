package resharding

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// The tests share one cluster, in which each of them moves slots of its own.
func TestSlotsThatMove(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for name, test := range map[string]func(*testing.T, *redistest.Cluster){
		"each waiter is served under load":       testLoad,
		"a lease is renewed":                     testRenewal,
		"a release is resent until it succeeds":  testRelease,
		"an attempt is committed":                testCommit,
		"a waiter that cancels leaves the queue": testCancel,
		"a Locker is closed":                     testClose,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
}

// longStage is how long a slot stays in each stage of a slow move. All stages together
// are shorter than a lease without renewal.
const longStage = leaseTTL / 8

// A loadRound moves each slot of a load to the next master.
type loadRound struct {
	name       string
	isStaged   bool // a slot stays in each stage until commands have met the stage
	isSlow     bool // and then longer
	inFastTier bool
}

// loadRounds are as many as the cluster has masters: after all of them each slot is back at its
// first master.
var loadRounds = [...]loadRound{
	{name: "as fast as possible"},
	{name: "in stages", isStaged: true, inFastTier: true},
	{name: "in long stages", isStaged: true, isSlow: true},
}

func testLoad(t *testing.T, cluster *redistest.Cluster) {
	l := newLoad(t, cluster, 3, "{a}", "{b}", "{c}")
	before := cluster.Masters()
	l.start()
	for _, round := range loadRounds {
		isMoved := t.Run(round.name, func(t *testing.T) {
			if !round.inFastTier {
				suite.Full(t, "repeats the test with each other way to move slots")
			}
			for i := range l.tags {
				l.move(t, cluster, i, round)
			}
		})
		if !isMoved { // a slot may be in the middle of its move
			break
		}
	}
	l.stop()
	l.check()
	if after := cluster.Masters(); !slices.Equal(before, after) {
		t.Errorf("a master was replaced, which may lose data: the machine is too slow for this test")
	}
	checkLeftovers(t, cluster, l.tags...)
	for _, locks := range l.lockers {
		closeLocker(t, locks)
	}
}

func (l *load) move(t *testing.T, cluster *redistest.Cluster, i int, round loadRound) {
	t.Helper()
	key, _ := l.hotKey(i)
	begun := clock.Now()
	m := beginMove(t, cluster, key)
	if round.isStaged {
		for _, s := range stages {
			s.reach(t, m)
			before := l.tryAgains.n.Load()
			suite.Eventually(t, "commands meet the stage: "+s.name, func() bool { return l.tryAgains.n.Load() >= before+5 })
			if round.isSlow {
				<-time.After(longStage)
			}
		}
	}
	m.finish()
	moved := clock.Now()
	suite.Eventually(t, key+" is granted after its move", func() bool {
		granted := l.history.Of(key).Holds().Granted()[key]
		return len(granted) > 0 && granted[len(granted)-1].Granted > time.Duration(moved)
	})
	served, holds := clock.Now(), l.history.Of(key).Holds()
	t.Logf("%s moved in %v: longest time without a grant %v during the move, %v after it", key,
		time.Duration(moved-begun).Round(time.Millisecond), holds.LongestGap(begun, moved).Round(time.Millisecond),
		holds.LongestGap(moved, served).Round(time.Millisecond))
}

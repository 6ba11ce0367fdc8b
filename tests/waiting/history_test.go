package waiting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// theKey is the key that all callers lock.
const theKey = "account:42"

// A turn is a hold of one goroutine of a process.
type turn struct {
	history.Hold
	goroutine, number int

	met     *turn         // the turn that was in the critical section when this turn entered it
	resumed time.Duration // when its process resumed, if it was stopped while the turn waited
}

// String names the turn.
func (u *turn) String() string {
	return fmt.Sprintf("process %d, goroutine %d, turn %d", u.Process, u.goroutine, u.number)
}

// waitEnd returns when the turn left the queue, or the largest time if it still waits.
func (u *turn) waitEnd() time.Duration {
	switch {
	case u.IsServed():
		return u.Granted
	case u.Killed:
		return u.Ended
	default:
		return math.MaxInt64
	}
}

// turns are all turns of one key.
type turns []*turn

// holds returns the turns for the checks of package history.
func (ts turns) holds() history.Holds {
	holds := make(history.Holds, len(ts))
	for i, one := range ts {
		one.Holder = one.String()
		holds[i] = &one.Hold
	}
	return holds
}

// granted returns the turns whose holders could trust the lock, in the order of their
// grants.
func (ts turns) granted() turns {
	var found turns
	for _, one := range ts {
		if one.IsTrusted() {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *turn) int { return cmp.Compare(a.Granted, b.Granted) })
	return found
}

// handOffs returns how often the key went from one process to another.
func (ts turns) handOffs() (n int) {
	granted := ts.granted()
	for i, one := range granted {
		if i > 0 && granted[i-1].Process != one.Process {
			n++
		}
	}
	return n
}

// longestWait returns the longest wait of a turn that was served.
func (ts turns) longestWait() (longest time.Duration) {
	for _, one := range ts {
		if one.IsServed() {
			longest = max(longest, one.Granted-one.Asked)
		}
	}
	return longest
}

// meanWait returns the mean wait of the turns that were served.
func (ts turns) meanWait() (mean time.Duration) {
	served := 0
	for _, one := range ts {
		if one.IsServed() {
			mean += one.Granted - one.Asked
			served++
		}
	}
	return mean / time.Duration(max(1, served))
}

// byLimit returns the turns of each kind of lease.
func (ts turns) byLimit() map[int]turns {
	kinds := map[int]turns{}
	for _, one := range ts {
		kinds[one.Limit] = append(kinds[one.Limit], one)
	}
	return kinds
}

// lost returns how many holders were informed that their lease was lost.
func (ts turns) lost() (n int) {
	for _, one := range ts {
		if one.Lost {
			n++
		}
	}
	return n
}

// encounters returns the turns that entered the critical section while another turn was
// in it. This check is sharper than history.Exclusion, because it needs no clock. A turn
// that outlived its lease, and was informed of that or killed, may be encountered.
func (ts turns) encounters() (violations []string) {
	for _, one := range ts {
		if met := one.met; met != nil && !one.Lost && !met.Lost && !met.Killed {
			violations = append(violations, fmt.Sprintf("%v encountered %v", one, met))
		}
	}
	return violations
}

func TestFiguresOfAHistory(t *testing.T) {
	t.Parallel()
	ts := validTurns(4, 10)
	ts[3].Lost = true
	ts = append(ts, &turn{Hold: history.Hold{Process: 2, Asked: 1}})
	if one := ts[:2]; one.meanWait() != (one[0].Granted-one[0].Asked+one[1].Granted-one[1].Asked)/2 || len(ts.byLimit()[0]) != 41 {
		t.Errorf("a mean wait of %v, %d exclusive turns", one.meanWait(), len(ts.byLimit()[0]))
	}
	if ts.handOffs() != 3 || ts.lost() != 1 || ts.longestWait() != ts[39].Granted-ts[39].Asked {
		t.Errorf("%d hand-offs, %d lost, a wait of %v", ts.handOffs(), ts.lost(), ts.longestWait())
	}
	if first := ts.granted()[0]; first != ts[0] || !strings.Contains(first.String(), "process 0, goroutine 0") {
		t.Errorf("the first is %v", first)
	}
	if holds := ts.holds(); len(holds) != len(ts) || holds[5].Holder != "process 0, goroutine 5, turn 0" || holds[5].Fence != ts[5].Fence {
		t.Errorf("the holds are %v", holds)
	}
}

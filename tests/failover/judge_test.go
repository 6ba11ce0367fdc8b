package failover

import (
	"fmt"
	"time"
)

// commitTime is how long a commit is tried at least, by core's documentation.
const commitTime = 2 * time.Second

// inTime is how soon others have to have found the new master, where a commit, which
// is tried for twice as long, has to have found it too. A machine that was late to wake
// somebody has less.
const inTime = commitTime / 2

// mustBeStored reports whether the new master was at work in time for the commit.
func (st *story) mustBeStored() bool {
	if st.failure.loss != nothing {
		return false
	}
	first := st.at.Add(st.figures.first)
	return st.point == late || first.Before(st.began.Add(commitTime-inTime-st.latest()))
}

// judge compares what became of the request with what is promised, and names it.
func (st *story) judge() string {
	runs, key := st.ledger.of(st.q.key), st.q.endpoint(st.overGRPC)
	told := func(word string) bool { return st.service.told(word, key) > 0 }
	fail := func(format string, args ...any) {
		st.t.Errorf("%s, over gRPC %v: %s; %d runs, first %v, retries %v, committed %v, restored %v, unstored %v, refused %v",
			st.point, st.overGRPC, fmt.Sprintf(format, args...), len(runs), st.first, st.retries,
			told(committed), told(restored), told(unstored), told(refused))
	}
	// The handler ran, so its answer is sent, whatever became of the commit.
	if !st.first.fine() || st.first.replayed || st.first.body != runs[0].id {
		fail("the client has another answer than that of the handler")
	}
	last := st.retries[len(st.retries)-1]
	for _, a := range st.retries[1:] {
		if a.code != last.code || a.body != last.body || a.fine() && !a.replayed {
			fail("retries differ")
			break
		}
	}
	switch again := st.retries[0]; {
	case len(runs) > 2, len(runs) == 2 && st.failure.loss == nothing:
		fail("more effects than the loss allows")
		return "wrong"
	case len(runs) == 2:
		if again.replayed || last.body != runs[1].id {
			fail("the second run is not what is kept")
		}
		if told(restored) {
			fail("it was restored, and ran again")
		}
		return "run again"
	case last.code == "outcome_unknown":
		if !told(unstored) && st.failure.loss == nothing {
			fail("nobody was told that it is not stored")
		}
		if st.mustBeStored() {
			fail("there was a master to store it %v after its commit began", st.at.Add(st.figures.first).Sub(st.began))
		}
		return "unknown"
	default:
		if again.body != st.first.body || !again.replayed {
			fail("the replay is not what the client has")
		}
		if st.failure.loss == all && st.point == heard {
			fail("it was lost")
		}
		return "replayed"
	}
}

package failover

import (
	"fmt"
	"time"
)

// commitTime is how long core documents that a commit is retried, at least.
const commitTime = 2 * time.Second

// findTime is how soon other requests must find the new master, so that a commit, which
// is retried for twice as long, must find it too. The delay of a busy machine reduces it.
const findTime = commitTime / 2

// mustBeStored reports whether the new master was available in time for the commit.
func (r *commitRequest) mustBeStored() bool {
	if r.failure.loss != nothing {
		return false
	}
	first := r.at.Add(r.figures.first)
	return r.phase == endsAfterReplacement || first.Before(r.commitBegan.Add(commitTime-findTime-r.longestDelay()))
}

// check fails the test if the result of the request is wrong, and returns its name.
func (r *commitRequest) check() string {
	runs, key := r.ledger.of(r.request.key), r.request.lockKey(r.overGRPC)
	happened := func(event string) bool { return r.service.count(event, key) > 0 }
	fail := func(format string, args ...any) {
		r.t.Errorf("%s, over gRPC %v: %s; %d runs, first %v, retries %v, committed %v, restored %v, uncommitted %v, superseded %v",
			r.phase, r.overGRPC, fmt.Sprintf(format, args...), len(runs), r.first, r.retries,
			happened(committed), happened(restored), happened(uncommitted), happened(superseded))
	}
	// The handler ran, so the client gets its answer whether the commit succeeds or not.
	if !r.first.isOK() || r.first.isReplayed || r.first.body != runs[0].id {
		fail("the client has another answer than the handler's")
	}
	last := r.retries[len(r.retries)-1]
	for _, a := range r.retries[1:] {
		if a.code != last.code || a.body != last.body || a.isOK() && !a.isReplayed {
			fail("the answers to retries differ")
			break
		}
	}
	switch again := r.retries[0]; {
	case len(runs) > 2, len(runs) == 2 && r.failure.loss == nothing:
		fail("more effects than the loss of data allows")
		return "wrong"
	case len(runs) == 2:
		if again.isReplayed || last.body != runs[1].id {
			fail("the stored answer is not that of the second run")
		}
		if happened(restored) {
			fail("the record was restored, and the request ran again")
		}
		return "run again"
	case last.code == outcomeUnknown:
		if !happened(uncommitted) && r.failure.loss == nothing {
			fail("the observer was not informed that the answer is not stored")
		}
		if r.mustBeStored() {
			fail("a master was available %v after the commit began", r.at.Add(r.figures.first).Sub(r.commitBegan))
		}
		return "unknown"
	default:
		if again.body != r.first.body || !again.isReplayed {
			fail("the replay differs from the client's answer")
		}
		if r.failure.loss == all && r.phase == isAnswered {
			fail("the data of the answer was lost, and it was replayed")
		}
		return "replayed"
	}
}

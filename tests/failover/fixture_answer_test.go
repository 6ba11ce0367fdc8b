package failover

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// A request is a request of a client.
type request struct {
	isIdempotent bool   // it takes effect once for its key; otherwise it runs under a lock of the key
	key          string // of the lock, or of the idempotent request
	id           string // tells it from all other requests
}

// An answer is the answer to a request.
type answer struct {
	isGRPC     bool
	status     int    // of HTTP or gRPC
	code       string // of the outcome, if the handler did not run
	body       string // the id of the run
	isReplayed bool
	err        error // there was no answer
}

func (a answer) isOK() bool {
	if a.isGRPC {
		return a.err == nil && a.status == int(codes.OK)
	}
	return a.err == nil && a.status >= 200 && a.status < 300
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s %s, replayed %v, %v", a.status, a.code, a.body, a.isReplayed, a.err)
}

// outcomeUnknown is the code of an idempotent request that may have taken effect.
const outcomeUnknown = "outcome_unknown"

// An outcome is the status of a request that did not run.
type outcome struct {
	http int
	grpc codes.Code
}

// outcomes are the outcomes that a failover can cause, as README.md documents them.
var outcomes = map[string]outcome{
	"busy":         {http.StatusConflict, codes.Aborted},
	"wait_timeout": {http.StatusConflict, codes.Aborted},
	"unavailable":  {http.StatusServiceUnavailable, codes.Unavailable},
	outcomeUnknown: {http.StatusConflict, codes.FailedPrecondition},
}

// violation returns what is wrong with the answer to a request, or "".
func (a answer) violation(q request, runs []history.Effect) string {
	if a.err != nil {
		return "no answer: " + a.err.Error()
	}
	if !a.isOK() {
		row, isKnown := outcomes[a.code]
		switch {
		case !isKnown:
			return "an undocumented outcome: " + a.String()
		case a.isGRPC && a.status != int(row.grpc), !a.isGRPC && a.status != row.http:
			return "another status than documented: " + a.String()
		case a.code == outcomeUnknown && !q.isIdempotent:
			return "an outcome of idempotent requests: " + a.String()
		}
		return ""
	}
	i := slices.IndexFunc(runs, func(r history.Effect) bool { return r.ID == a.body })
	switch {
	case i < 0:
		return "a success without a run: " + a.String()
	case a.isReplayed && !q.isIdempotent:
		return "a replay of a request that is not idempotent: " + a.String()
	case !a.isReplayed && runs[i].Request != q.id:
		return "a success of another request: " + a.String()
	}
	return ""
}

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
	return r.phase == endsAfterReplacement || r.firstRunAt < r.commitBegan+int64(commitTime-findTime-r.longestDelay())
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
	if !r.first.isOK() || r.first.isReplayed || r.first.body != runs[0].ID {
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
		if again.isReplayed || last.body != runs[1].ID {
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
			fail("a master was available %v after the commit began", time.Duration(r.firstRunAt-r.commitBegan))
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

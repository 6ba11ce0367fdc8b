package failover

import (
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/grpc/codes"
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

// isOK reports whether the answer is a success.
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
func (a answer) violation(q request, runs []run) string {
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
	i := slices.IndexFunc(runs, func(r run) bool { return r.id == a.body })
	switch {
	case i < 0:
		return "a success without a run: " + a.String()
	case a.isReplayed && !q.isIdempotent:
		return "a replay of a request that is not idempotent: " + a.String()
	case !a.isReplayed && runs[i].request != q.id:
		return "a success of another request: " + a.String()
	}
	return ""
}

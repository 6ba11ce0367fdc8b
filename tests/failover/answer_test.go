package failover

import (
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/grpc/codes"
)

// A question is a request of a client.
type question struct {
	once    bool   // it takes effect once for its key; else it only runs under the lock of it
	key     string // of the lock, or of the idempotent request
	request string // tells it from all others
}

// An answer is what a client got.
type answer struct {
	grpc     bool
	status   int    // by the framework's count
	code     string // of the outcome, if the handler did not run
	body     string // the id of the run
	replayed bool
	err      error // there was no answer
}

// fine reports whether the answer is a success.
func (a answer) fine() bool {
	if a.grpc {
		return a.err == nil && a.status == int(codes.OK)
	}
	return a.err == nil && a.status >= 200 && a.status < 300
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s %s, replayed %v, %v", a.status, a.code, a.body, a.replayed, a.err)
}

// An outcome is how a request is answered that did not run.
type outcome struct {
	http int
	grpc codes.Code
}

// outcomes are those that a failover can bring about, as the README has them.
var outcomes = map[string]outcome{
	"busy":            {http.StatusConflict, codes.Aborted},
	"wait_timeout":    {http.StatusConflict, codes.Aborted},
	"unavailable":     {http.StatusServiceUnavailable, codes.Unavailable},
	"outcome_unknown": {http.StatusConflict, codes.FailedPrecondition},
}

// fault returns what is wrong with the answer to a question, "" if nothing is.
func (a answer) fault(q question, runs []run) string {
	if a.err != nil {
		return "no answer: " + a.err.Error()
	}
	if !a.fine() {
		row, known := outcomes[a.code]
		switch {
		case !known:
			return "no row of the table: " + a.String()
		case a.grpc && a.status != int(row.grpc), !a.grpc && a.status != row.http:
			return "another status than that of the table: " + a.String()
		case a.code == "outcome_unknown" && !q.once:
			return "an outcome of idempotent requests: " + a.String()
		}
		return ""
	}
	i := slices.IndexFunc(runs, func(r run) bool { return r.id == a.body })
	switch {
	case i < 0:
		return "a success, and nobody ran: " + a.String()
	case a.replayed && !q.once:
		return "a replay of what is not kept: " + a.String()
	case !a.replayed && runs[i].request != q.request:
		return "a success of another request: " + a.String()
	}
	return ""
}

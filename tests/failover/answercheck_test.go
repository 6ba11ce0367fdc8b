package failover

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestViolationsOfAnswersAreFound(t *testing.T) {
	t.Parallel()
	runs := []run{{id: "run-1", request: "a"}}
	locked, idempotent := request{id: "a"}, request{isIdempotent: true, id: "a"}
	retry := request{isIdempotent: true, id: "b"}
	for name, test := range map[string]struct {
		q    request
		a    answer
		want string // "" is no violation
	}{
		"a success":                       {locked, answer{status: http.StatusCreated, body: "run-1"}, ""},
		"a success over gRPC":             {locked, answer{isGRPC: true, status: int(codes.OK), body: "run-1"}, ""},
		"a replay":                        {retry, answer{status: http.StatusCreated, body: "run-1", isReplayed: true}, ""},
		"a refusal":                       {locked, answer{status: http.StatusServiceUnavailable, code: "unavailable"}, ""},
		"an unknown outcome":              {idempotent, answer{isGRPC: true, status: int(codes.FailedPrecondition), code: outcomeUnknown}, ""},
		"a success without a run":         {locked, answer{status: http.StatusCreated, body: "run-2"}, "without a run"},
		"an empty success":                {locked, answer{isGRPC: true, status: int(codes.OK)}, "without a run"},
		"a success of another request":    {retry, answer{status: http.StatusCreated, body: "run-1"}, "another request"},
		"a replay under a lock":           {locked, answer{status: http.StatusCreated, body: "run-1", isReplayed: true}, "not idempotent"},
		"an unknown outcome of a lock":    {locked, answer{status: http.StatusConflict, code: outcomeUnknown}, "idempotent"},
		"an error without a code":         {locked, answer{status: http.StatusInternalServerError}, "undocumented"},
		"a code with another status":      {locked, answer{status: http.StatusConflict, code: "unavailable"}, "another status"},
		"a code with a status of HTTP":    {locked, answer{isGRPC: true, status: http.StatusConflict, code: "busy"}, "another status"},
		"a broken connection":             {locked, answer{err: errors.New("EOF")}, "no answer"},
		"a success with a truncated body": {locked, answer{status: http.StatusCreated, body: "run-1", err: errors.New("EOF")}, "no answer"},
	} {
		if found := test.a.violation(test.q, runs); (found == "") != (test.want == "") || !strings.Contains(found, test.want) {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
	}
}

func TestGapsAreFound(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var runs []run
	for _, at := range []time.Duration{0, 50, 60, 100, 110} {
		runs = append(runs, run{began: start.Add(at)})
	}
	for after, want := range map[time.Duration]time.Duration{0: 50, 50: 40, 99: 40, 100: 10, 110: 0} {
		if got := longestGap(runs, start.Add(after)); got != want {
			t.Errorf("after %d the longest gap is %d, want %d", after, got, want)
		}
	}
}

package failover

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestFaultsOfAnswersAreFound(t *testing.T) {
	t.Parallel()
	runs := []run{{id: "run-1", request: "a"}}
	locked, once := question{request: "a"}, question{once: true, request: "a"}
	retry := question{once: true, request: "b"}
	for name, test := range map[string]struct {
		q     question
		a     answer
		finds string // "" is no fault
	}{
		"a success":                     {locked, answer{status: http.StatusCreated, body: "run-1"}, ""},
		"a success over gRPC":           {locked, answer{grpc: true, status: int(codes.OK), body: "run-1"}, ""},
		"a replay":                      {retry, answer{status: http.StatusCreated, body: "run-1", replayed: true}, ""},
		"a refusal":                     {locked, answer{status: http.StatusServiceUnavailable, code: "unavailable"}, ""},
		"an unknown outcome":            {once, answer{grpc: true, status: int(codes.FailedPrecondition), code: "outcome_unknown"}, ""},
		"a success of nobody":           {locked, answer{status: http.StatusCreated, body: "run-2"}, "nobody ran"},
		"an empty success":              {locked, answer{grpc: true, status: int(codes.OK)}, "nobody ran"},
		"another's success":             {retry, answer{status: http.StatusCreated, body: "run-1"}, "another request"},
		"a replay under a lock":         {locked, answer{status: http.StatusCreated, body: "run-1", replayed: true}, "not kept"},
		"an unknown outcome of a lock":  {locked, answer{status: http.StatusConflict, code: "outcome_unknown"}, "idempotent"},
		"an error without a code":       {locked, answer{status: http.StatusInternalServerError}, "no row"},
		"a code with another status":    {locked, answer{status: http.StatusConflict, code: "unavailable"}, "another status"},
		"a code with a status of gRPC":  {locked, answer{grpc: true, status: http.StatusConflict, code: "busy"}, "another status"},
		"a connection that has broken":  {locked, answer{err: errors.New("EOF")}, "no answer"},
		"a success without a whole end": {locked, answer{status: http.StatusCreated, body: "run-1", err: errors.New("EOF")}, "no answer"},
	} {
		if found := test.a.fault(test.q, runs); (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
			t.Errorf("%s: found %q, want %q", name, found, test.finds)
		}
	}
}

func TestFaultsOfHistoriesAreFound(t *testing.T) {
	t.Parallel()
	start := time.Now()
	one := func(from, to int, fence int64, told bool) hold {
		return hold{
			key: "k", by: "somebody", granted: start.Add(time.Duration(from)), ended: start.Add(time.Duration(to)),
			fence: fence, told: told,
		}
	}
	for name, test := range map[string]struct {
		holds    []hold
		may      bool // data may be lost
		overlaps int
		faults   int
		falls    int
	}{
		"one after the other":                {[]hold{one(10, 20, 2, false), one(0, 10, 1, false)}, false, 0, 0, 0},
		"an overlap":                         {[]hold{one(0, 11, 1, false), one(10, 20, 2, false)}, false, 1, 1, 0},
		"one where nothing was lost":         {[]hold{one(0, 11, 1, true), one(10, 20, 2, false)}, false, 1, 1, 0},
		"one where data was lost":            {[]hold{one(0, 11, 1, true), one(10, 20, 2, false)}, true, 1, 0, 0},
		"one that nobody was told of":        {[]hold{one(0, 11, 1, false), one(10, 20, 2, false)}, true, 1, 1, 0},
		"one with the hold before the last":  {[]hold{one(0, 30, 1, false), one(1, 2, 2, false), one(20, 25, 3, false)}, false, 2, 2, 0},
		"a number that falls":                {[]hold{one(0, 10, 2, false), one(10, 20, 1, false)}, false, 0, 0, 1},
		"a number that repeats":              {[]hold{one(0, 10, 2, false), one(10, 20, 2, false)}, false, 0, 0, 1},
		"a number that falls after a higher": {[]hold{one(0, 9, 1, false), one(10, 19, 3, false), one(20, 29, 2, false)}, false, 0, 0, 1},
		"a hold without a number":            {[]hold{one(0, 9, 1, false), one(10, 19, 0, false), one(20, 29, 2, false)}, false, 0, 0, 0},
	} {
		h := history{holds: test.holds}
		n, faults := h.overlaps(test.may)
		if falls := h.falls(); n != test.overlaps || len(faults) != test.faults || len(falls) != test.falls {
			t.Errorf("%s: %d overlaps, %q, %q", name, n, faults, falls)
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

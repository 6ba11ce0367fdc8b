package load

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFaultsOfAnswersAreFound(t *testing.T) {
	t.Parallel()
	opened := time.Now()
	plain := &request{name: "a", wait: shortWait}
	lostAttempt := &request{name: "e", once: "m", wait: longWait}
	first, copied := &request{name: "b", once: "k", wait: longWait}, &request{name: "c", once: "k", wait: longWait}
	other := &request{name: "d", once: "l"}
	of := map[string]*request{"a": plain, "b": first, "c": copied, "d": other, "e": lostAttempt}
	refusal := func(r *request, status int, code string) answer {
		return answer{request: r, at: opened.Add(time.Minute), status: status, code: code, retry: code != "outcome_unknown"}
	}
	soon := func(a answer) answer { a.at = opened.Add(time.Millisecond); return a }
	turned := func(a answer) answer { a.retry = !a.retry; return a }
	early := refusal(first, http.StatusServiceUnavailable, "unavailable")
	for name, test := range map[string]struct {
		a     answer
		ran   string
		finds string // "" if the answer is right
	}{
		"a success":                  {answer{request: plain, status: http.StatusOK, body: "a"}, "a", ""},
		"a replay":                   {answer{request: copied, status: http.StatusOK, body: "b", replayed: true}, "b", ""},
		"a refusal":                  {refusal(plain, http.StatusConflict, "wait_timeout"), "", ""},
		"an unknown outcome":         {refusal(first, http.StatusConflict, "outcome_unknown"), "", ""},
		"no answer":                  {answer{request: plain, err: errors.New("EOF")}, "", "no answer"},
		"a success of no handler":    {answer{request: plain, status: http.StatusOK, body: "a"}, "", "without a run"},
		"an empty success":           {answer{request: plain, status: http.StatusOK}, "a", "without a run"},
		"another's success":          {answer{request: plain, status: http.StatusOK, body: "b"}, "b", "another request"},
		"a replay of another":        {answer{request: other, status: http.StatusOK, body: "b", replayed: true}, "b", "another request"},
		"a replay under a lock":      {answer{request: plain, status: http.StatusOK, body: "a", replayed: true}, "a", "another request"},
		"an error without a code":    {answer{request: plain, status: http.StatusInternalServerError}, "", "neither"},
		"an error of no row":         {refusal(plain, http.StatusInternalServerError, "internal"), "", "no row"},
		"a code with another status": {refusal(plain, http.StatusInternalServerError, "unavailable"), "", "no row"},
		"a refusal for good":         {turned(refusal(plain, http.StatusConflict, "busy")), "", "no row"},
		"an outcome to try again":    {turned(refusal(first, http.StatusConflict, "outcome_unknown")), "", "no row"},
		"a refusal of what ran":      {refusal(plain, http.StatusServiceUnavailable, "unavailable"), "a", "that ran"},
		"a refusal too early":        {soon(early), "", "before the wait"},
		"one of a lost lock":         {soon(refusal(plain, http.StatusConflict, "wait_timeout")), "", "before the wait"},
		"one of a lost attempt":      {soon(refusal(lostAttempt, http.StatusConflict, "wait_timeout")), "", ""},
		"an unknown outcome of a lock": {
			refusal(plain, http.StatusConflict, "outcome_unknown"), "", "idempotent",
		},
	} {
		found := test.a.fault(&facts{
			byName: of, gateOpened: opened, ran: map[string]int{test.ran: 1}, lostAttempts: map[string]bool{"e": true},
		})
		if (found == "") != (test.finds == "") || !strings.Contains(found, test.finds) {
			t.Errorf("%s: found %q, want %q", name, found, test.finds)
		}
	}
}

func TestLostCountsAreFound(t *testing.T) {
	t.Parallel()
	a := &account{overlapped: make(chan struct{})}
	plain, fenced, _ := a.enter(1)
	otherPlain, otherFenced, _ := a.enter(2)
	a.leave(otherPlain+1, otherFenced+1, 2, true)
	a.leave(plain+1, fenced+1, 1, true) // after a later holder
	plain, fenced, _ = a.enter(3)
	a.leave(plain+1, fenced+1, 3, false) // it was notified
	<-a.overlapped
	var got total
	got.add(a)
	if want := (total{runs: 2, overlaps: 1, lost: 1, refused: 1, notified: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

package crash

import (
	"testing"
)

// check checks all that was observed, and what is left in Redis.
func (s *soak) check(t *testing.T) {
	t.Helper()
	var replays, unknown, again, uncommitted, waits int
	for _, e := range s.jobs {
		for _, supervisor := range s.supervisors {
			a, err := s.ask(supervisor.process(), e.request)
			if err != nil {
				t.Fatalf("%+v: %v", e.request, err)
			}
			s.take(e, a)
		}
		seen := s.observation(e.request, e.answers, s.processes...)
		for _, fault := range seen.violations() {
			t.Errorf("%+v: %s", e.request, fault)
		}
		s.checkEnd(t, seen)
		for _, a := range e.answers {
			if a.Replayed {
				replays++
			}
		}
		for _, w := range seen.writes {
			if w.Number == 2 {
				again++
			}
		}
		if seen.freed() > 0 || e.answers[len(e.answers)-1].Code == "outcome_unknown" {
			unknown++
		}
		for _, was := range seen.uncommitted {
			if was {
				uncommitted++
			}
		}
		for _, p := range s.processes {
			waits += p.events(waiting, s.framework.endpoint(e.policy, e.key))
		}
	}
	crashes := s.crashes()
	for _, supervisor := range s.supervisors {
		supervisor.process().stop()
	}
	s.wantNoLocksLeft(t)
	t.Logf("%d keys, %d processes, crashes: %v", len(s.jobs), len(s.processes), crashes)
	t.Logf("%d replays, %d that waited, %d keys with an unknown outcome, %d that ran again, %d commits refused",
		replays, waits, unknown, again, uncommitted)
	if len(crashes) == 0 || replays == 0 {
		t.Error("no process was killed, or no answer was replayed")
	}
}

// checkEnd fails the test unless the last two answers match the record. After an unknown
// outcome an abort may arrive late: then the request has run for the first of the two.
func (s *soak) checkEnd(t *testing.T, seen *observation) {
	t.Helper()
	if len(seen.writes) == 0 {
		t.Errorf("%+v: nothing happened", seen.request)
		return
	}
	before, last := seen.answers[len(seen.answers)-2], seen.answers[len(seen.answers)-1]
	switch state := seen.writes[len(seen.writes)-1].State; {
	case state == "D" && before.Fine && last.Replayed:
	case state == "R" && seen.policy == reject && before.Code == "outcome_unknown" && last.Code == before.Code:
	default:
		t.Errorf("%+v: the record ends as %q, and the answers as %v and %v", seen.request, state, before, last)
	}
}

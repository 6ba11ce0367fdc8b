package crash

import "testing"

// check looks at all that has been seen, and at what is left.
func (s *soak) check(t *testing.T) {
	t.Helper()
	var replays, unknown, again, excused, waits int
	for _, e := range s.stories {
		for _, seat := range s.seats {
			a, err := s.ask(seat.process(), e.question)
			if err != nil {
				t.Fatalf("%+v: %v", e.question, err)
			}
			s.take(e, a)
		}
		told := s.story(e.question, e.answers, s.processes...)
		for _, fault := range told.faults() {
			t.Errorf("%+v: %s", e.question, fault)
		}
		s.checkEnd(t, told)
		for _, a := range e.answers {
			if a.Replayed {
				replays++
			}
		}
		for _, w := range told.writes {
			if w.Number == 2 {
				again++
			}
		}
		if told.freed() > 0 || e.answers[len(e.answers)-1].Code == "outcome_unknown" {
			unknown++
		}
		for _, was := range told.excused {
			if was {
				excused++
			}
		}
		for _, p := range s.processes {
			waits += p.told(waiting, s.framework.endpoint(e.policy, e.key))
		}
	}
	crashes := s.crashes()
	for _, seat := range s.seats {
		seat.process().stop()
	}
	s.wantTidy(t)
	t.Logf("%d keys, %d processes, crashes: %v", len(s.stories), len(s.processes), crashes)
	t.Logf("%d replays, %d that waited, %d keys with an unknown outcome, %d that ran again, %d commits refused",
		replays, waits, unknown, again, excused)
	if len(crashes) == 0 || replays == 0 {
		t.Error("that was no crash test")
	}
}

// checkEnd fails the test unless the last two answers are those of the record. Of a
// request whose outcome was unknown, an abort may have come late: then it has run
// for the first of the two.
func (s *soak) checkEnd(t *testing.T, told *story) {
	t.Helper()
	if len(told.writes) == 0 {
		t.Errorf("%+v: nothing happened", told.question)
		return
	}
	before, last := told.answers[len(told.answers)-2], told.answers[len(told.answers)-1]
	switch state := told.writes[len(told.writes)-1].State; {
	case state == "D" && before.Fine && last.Replayed:
	case state == "R" && told.policy == reject && before.Code == "outcome_unknown" && last.Code == before.Code:
	default:
		t.Errorf("%+v: the record ends as %q, and the answers as %v and %v", told.question, state, before, last)
	}
}

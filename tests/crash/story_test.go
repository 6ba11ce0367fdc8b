package crash

import (
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// A story is all that has been seen of a key.
type story struct {
	question
	writes  []write  // to its record, in their order
	answers []answer // that clients got, those who were refused included
	effects []effect
	// excused are the processes that have told that an attempt of theirs was not
	// committed.
	excused map[int]bool
	// committed returns the answer in a record.
	committed func(text string) (answer, error)
}

// faults returns what is wrong with the story.
func (s *story) faults() (found []string) {
	for _, check := range []func(*story) []string{
		(*story).commits, (*story).numbers, (*story).replays, (*story).firsts, (*story).charges, (*story).unknown,
	} {
		found = append(found, check(s)...)
	}
	return found
}

// commits asks that one answer was committed at most, by the attempt that began
// last, and that nothing happened to the record after it.
func (s *story) commits() (found []string) {
	last := ""
	for i, w := range s.writes {
		switch w.State {
		case "R":
			last = w.Token
		case "D", "U":
			if w.Token != last && last != "" {
				found = append(found, fmt.Sprintf("write %d: committed by another attempt than the last", i))
			}
			if rest := s.writes[i+1:]; len(rest) > 0 {
				found = append(found, fmt.Sprintf("write %d: committed, and then written as %q", i, rest[0].State))
			}
		}
	}
	return found
}

// numbers asks that attempts are counted, from 1 where none before is known.
func (s *story) numbers() (found []string) {
	next := 1
	for i, w := range s.writes {
		switch {
		case w.State != "R":
			next = 1
			continue
		case strings.HasPrefix(w.Token, "aborted:"): // those before it died
			next = w.Number + 1
			continue
		}
		if w.Number != next {
			found = append(found, fmt.Sprintf("write %d: attempt %d, not %d", i, w.Number, next))
		}
		next = w.Number + 1
		if s.policy == reject && w.Number > 1 {
			found = append(found, fmt.Sprintf("write %d: attempt %d began, although the one before it died", i, w.Number))
		}
	}
	return found
}

// answer returns the answer that was committed.
func (s *story) answer() (a answer, done bool, found []string) {
	for _, w := range s.writes {
		if w.State == "D" {
			a, err := s.committed(w.Answer)
			if err != nil {
				found = append(found, fmt.Sprintf("what was committed is no answer: %v", err))
			}
			return a, true, found
		}
	}
	return a, false, nil
}

// replays asks that they are equal to what was committed.
func (s *story) replays() []string {
	want, done, found := s.answer()
	for i, a := range s.answers {
		if a.Replayed && (!done || !a.same(want)) {
			found = append(found, fmt.Sprintf("answer %d is no replay of %v: %v", i, want, a))
		}
	}
	return found
}

// firsts asks that an answer which is no replay was committed, and was given once,
// unless its process has told that it could not be committed.
func (s *story) firsts() (found []string) {
	want, done, _ := s.answer()
	firsts := 0
	for i, a := range s.answers {
		switch {
		case !a.Fine || a.Replayed:
		case done && a.same(want):
			firsts++
		case !s.excused[a.Process]:
			found = append(found, fmt.Sprintf("answer %d was never committed: %v", i, a))
		}
	}
	if firsts > 1 {
		found = append(found, fmt.Sprintf("%d are told that it was their request that ran", firsts))
	}
	return found
}

// charges asks that each effect is that of an attempt which began, and that no
// attempt has two; so that with Reject there is one at most for each time that the
// operator lets the request run. What was committed tells of the last one.
func (s *story) charges() (found []string) {
	began := map[string]int{}
	for _, w := range s.writes {
		if w.State == "R" {
			began[w.Token] = w.Number
		}
	}
	had := map[string]bool{}
	for _, e := range s.effects {
		switch number, known := began[e.Token]; {
		case !known:
			found = append(found, fmt.Sprintf("%s is of an attempt that never began", e.id))
		case number != e.Number:
			found = append(found, fmt.Sprintf("%s is of attempt %d, which took itself for %d", e.id, number, e.Number))
		case had[e.Token]:
			found = append(found, fmt.Sprintf("%s is the second one of an attempt", e.id))
		}
		had[e.Token] = true
	}
	if n, freed := len(s.effects), s.freed(); s.policy == reject && n > 1+freed {
		found = append(found, fmt.Sprintf("%d charges, freed %d times", n, freed))
	}
	for i, w := range s.writes {
		if w.State == "D" && !had[w.Token] {
			found = append(found, fmt.Sprintf("write %d: committed without an effect", i))
		}
	}
	return found
}

// freed returns how often the operator has freed the key.
func (s *story) freed() (times int) {
	for _, w := range s.writes {
		if w == (write{}) {
			times++
		}
	}
	return times
}

// unknown asks that nobody hears of an unknown outcome where attempts run again,
// and else only if one has begun.
func (s *story) unknown() (found []string) {
	for i, a := range s.answers {
		if a.Code == "outcome_unknown" && (s.policy == rerun || len(s.writes) == 0) {
			found = append(found, fmt.Sprintf("answer %d: %v", i, a))
		}
	}
	return found
}

// decodeHTTP returns the answer in a record of an HTTP answer.
func decodeHTTP(text string) (answer, error) {
	kept, err := record.Decode([]byte(text))
	return answer{Status: kept.Status, Location: kept.Header.Get("Location"), Body: string(kept.Body)}, err
}

// story returns what has been seen of a question's key, with what its clients got.
func (s *site) story(q question, answers []answer, asked ...*process) *story {
	s.witness.settle(s.t)
	key := s.framework.endpoint(q.policy, q.key)
	told := &story{
		question: q, answers: answers, effects: s.ledger.of(q.key), writes: s.witness.of(s.lock(q)),
		excused: map[int]bool{}, committed: s.framework.committed,
	}
	for _, p := range asked {
		told.excused[p.number] = p.told(refused, key)+p.told(unstored, key) > 0
	}
	return told
}

package crash

import (
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// An observation is all that was observed of a key.
type observation struct {
	request
	writes  []write  // to its record, in order
	answers []answer // of all clients, refusals included
	effects []effect
	// uncommitted holds the processes that reported that they could not commit an attempt.
	uncommitted map[int]bool
	// committed returns the answer in a record.
	committed func(text string) (answer, error)
}

// violations returns what is wrong with the observation.
func (o *observation) violations() (found []string) {
	for _, check := range []func(*observation) []string{
		(*observation).commits, (*observation).numbers, (*observation).replays, (*observation).firsts, (*observation).charges, (*observation).unknown,
	} {
		found = append(found, check(o)...)
	}
	return found
}

// commits checks that at most one answer is committed, by the attempt that began last, and
// that nothing is written to the record later.
func (o *observation) commits() (found []string) {
	last := ""
	for i, w := range o.writes {
		switch w.State {
		case "R":
			last = w.Token
		case "D", "U":
			if w.Token != last && last != "" && !w.isResolved() {
				found = append(found, fmt.Sprintf("write %d: committed by another attempt than the last", i))
			}
			if rest := o.writes[i+1:]; len(rest) > 0 {
				found = append(found, fmt.Sprintf("write %d: committed, and then written as %q", i, rest[0].State))
			}
		}
	}
	return found
}

// numbers checks that attempts are numbered, from 1 where no attempt is recorded before.
func (o *observation) numbers() (found []string) {
	next := 1
	for i, w := range o.writes {
		switch {
		case w.State != "R":
			next = 1
			continue
		case strings.HasPrefix(w.Token, "aborted:"): // the attempts before it were killed
			next = w.Number + 1
			continue
		}
		if w.Number != next {
			found = append(found, fmt.Sprintf("write %d: attempt %d, not %d", i, w.Number, next))
		}
		next = w.Number + 1
		if o.policy == reject && w.Number > 1 {
			found = append(found, fmt.Sprintf("write %d: attempt %d began after an attempt that was killed", i, w.Number))
		}
	}
	return found
}

// answer returns the answer that was committed.
func (o *observation) answer() (a answer, done bool, found []string) {
	for _, w := range o.writes {
		if w.State == "D" {
			a, err := o.committed(w.Answer)
			if err != nil {
				found = append(found, fmt.Sprintf("the committed bytes are no answer: %v", err))
			}
			return a, true, found
		}
	}
	return a, false, nil
}

// replays checks that each replay equals the committed answer.
func (o *observation) replays() []string {
	want, done, found := o.answer()
	for i, a := range o.answers {
		if a.Replayed && (!done || !a.same(want)) {
			found = append(found, fmt.Sprintf("answer %d is not a replay of %v: %v", i, want, a))
		}
	}
	return found
}

// firsts checks each answer that is not a replay: it was committed and sent once, or its
// process reported that it could not commit.
func (o *observation) firsts() (found []string) {
	want, done, _ := o.answer()
	firsts := 0
	for i, a := range o.answers {
		switch {
		case !a.Fine || a.Replayed:
		case done && a.same(want):
			firsts++
		case !o.uncommitted[a.Process]:
			found = append(found, fmt.Sprintf("answer %d was never committed: %v", i, a))
		}
	}
	if firsts > 1 {
		found = append(found, fmt.Sprintf("%d clients got the committed answer unmarked", firsts))
	}
	return found
}

// charges checks that each effect belongs to an attempt that began, and that no attempt
// has two effects. With Reject there is at most one effect more than the operator has freed
// the key. The attempt that committed has an effect.
func (o *observation) charges() (found []string) {
	began := map[string]int{}
	for _, w := range o.writes {
		if w.State == "R" {
			began[w.Token] = w.Number
		}
	}
	had := map[string]bool{}
	for _, e := range o.effects {
		switch number, known := began[e.Token]; {
		case !known:
			found = append(found, fmt.Sprintf("%s is of an attempt that never began", e.id))
		case number != e.Number:
			found = append(found, fmt.Sprintf("%s is of attempt %d, which has the number %d", e.id, e.Number, number))
		case had[e.Token]:
			found = append(found, fmt.Sprintf("%s is the second of one attempt", e.id))
		}
		had[e.Token] = true
	}
	if n, freed := len(o.effects), o.freed(); o.policy == reject && n > 1+freed {
		found = append(found, fmt.Sprintf("%d charges, freed %d times", n, freed))
	}
	for i, w := range o.writes {
		if w.State == "D" && !had[w.Token] && !w.isResolved() {
			found = append(found, fmt.Sprintf("write %d: committed without an effect", i))
		}
	}
	return found
}

// isResolved reports whether an operator has said that the request is done.
func (w write) isResolved() bool { return strings.HasPrefix(w.Token, "resolved:") }

// freed returns how many times the operator has freed the key.
func (o *observation) freed() (times int) {
	for _, w := range o.writes {
		if w == (write{}) {
			times++
		}
	}
	return times
}

// unknown checks that outcome_unknown is answered only with Reject, and only after an
// attempt has begun.
func (o *observation) unknown() (found []string) {
	for i, a := range o.answers {
		if a.Code == "outcome_unknown" && (o.policy == rerun || len(o.writes) == 0) {
			found = append(found, fmt.Sprintf("answer %d: %v", i, a))
		}
	}
	return found
}

// decodeHTTP returns the answer in the record of an HTTP answer.
func decodeHTTP(text string) (answer, error) {
	kept, err := record.Decode([]byte(text))
	return answer{Status: kept.Status, Location: kept.Header.Get("Location"), Body: string(kept.Body)}, err
}

// observation returns what was observed of a request's key, with the answers of its clients.
func (s *testbed) observation(q request, answers []answer, asked ...*process) *observation {
	s.monitor.sync(s.t)
	key := s.framework.endpoint(q.policy, q.key)
	seen := &observation{
		request: q, answers: answers, effects: s.ledger.of(q.key), writes: s.monitor.of(s.lock(q)),
		uncommitted: map[int]bool{}, committed: s.framework.committed,
	}
	for _, p := range asked {
		seen.uncommitted[p.number] = p.events(refused, key)+p.events(unstored, key) > 0
	}
	return seen
}

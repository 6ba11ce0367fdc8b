package history

import (
	"fmt"
	"strings"
)

// A Request is all that was observed of one idempotent request.
type Request struct {
	// Writes are the changes of its record in Redis, in order: each is a Begin, a Commit, a Seal or
	// a Forget, with the token of the attempt as Lease.
	Writes  []Op
	Answers []Op // the Begin of each client, refusals included
	Effects []Effect
	// Reruns is set if an attempt may run after one that died.
	Reruns bool
	// Uncommitted holds the processes that reported that they could not commit an attempt.
	Uncommitted map[int]bool
}

// The beginnings of a token in a record that no attempt has.
const (
	abortedToken  = "aborted:"
	resolvedToken = "resolved:"
)

// Violations returns what is wrong with the request.
func (q *Request) Violations() (found []string) {
	for _, check := range []func(*Request) []string{
		(*Request).commits, (*Request).numbers, (*Request).replays, (*Request).firsts, (*Request).effects, (*Request).unknown,
	} {
		found = append(found, check(q)...)
	}
	return found
}

// commits checks that at most one answer is committed, by the attempt that began last, and that
// nothing is written to the record later.
func (q *Request) commits() (found []string) {
	last := ""
	for i, w := range q.Writes {
		switch w.Kind {
		case Begin:
			last = w.Lease
		case Commit, Seal:
			if w.Lease != last && last != "" && !strings.HasPrefix(w.Lease, resolvedToken) {
				found = append(found, fmt.Sprintf("write %d: committed by another attempt than the last", i))
			}
			if rest := q.Writes[i+1:]; len(rest) > 0 {
				found = append(found, fmt.Sprintf("write %d: committed, and then written by a %s", i, rest[0].Kind))
			}
		}
	}
	return found
}

// numbers checks that attempts are numbered, from 1 where no attempt is recorded before.
func (q *Request) numbers() (found []string) {
	next := 1
	for i, w := range q.Writes {
		switch {
		case w.Kind != Begin:
			next = 1
			continue
		case strings.HasPrefix(w.Lease, abortedToken): // the attempts before it were killed
			next = w.Number + 1
			continue
		}
		if w.Number != next {
			found = append(found, fmt.Sprintf("write %d: attempt %d, not %d", i, w.Number, next))
		}
		next = w.Number + 1
		if !q.Reruns && w.Number > 1 {
			found = append(found, fmt.Sprintf("write %d: attempt %d began after an attempt that was killed", i, w.Number))
		}
	}
	return found
}

func (q *Request) committed() (record string, isDone bool) {
	for _, w := range q.Writes {
		if w.Kind == Commit {
			return w.Record, true
		}
	}
	return "", false
}

func (q *Request) replays() (found []string) {
	want, isDone := q.committed()
	for i, a := range q.Answers {
		if a.Outcome == Replayed && (!isDone || a.Record != want) {
			found = append(found, fmt.Sprintf("answer %d is not a replay of %.120q: %.120q", i, want, a.Record))
		}
	}
	return found
}

// firsts checks each answer that is not a replay: it was committed and sent once, or its process
// reported that it could not commit.
func (q *Request) firsts() (found []string) {
	want, isDone := q.committed()
	firsts := 0
	for i, a := range q.Answers {
		switch {
		case a.Outcome != Granted:
		case isDone && a.Record == want:
			firsts++
		case !q.Uncommitted[a.Process]:
			found = append(found, fmt.Sprintf("answer %d was never committed: %.120q", i, a.Record))
		}
	}
	if firsts > 1 {
		found = append(found, fmt.Sprintf("%d clients got the committed answer unmarked", firsts))
	}
	return found
}

// effects checks that each effect belongs to an attempt that began, and that no attempt has two
// effects. Without reruns there is at most one effect more than the operator has freed the key. The
// attempt that committed has an effect.
func (q *Request) effects() (found []string) {
	began := map[string]int{}
	for _, w := range q.Writes {
		if w.Kind == Begin {
			began[w.Lease] = w.Number
		}
	}
	had := map[string]bool{}
	for _, e := range q.Effects {
		switch number, known := began[e.Lease]; {
		case !known:
			found = append(found, fmt.Sprintf("%s is of an attempt that never began", e.ID))
		case number != e.Number:
			found = append(found, fmt.Sprintf("%s is of attempt %d, which has the number %d", e.ID, e.Number, number))
		case had[e.Lease]:
			found = append(found, fmt.Sprintf("%s is the second of one attempt", e.ID))
		}
		had[e.Lease] = true
	}
	if n, freed := len(q.Effects), q.Freed(); !q.Reruns && n > 1+freed {
		found = append(found, fmt.Sprintf("%d charges, freed %d times", n, freed))
	}
	for i, w := range q.Writes {
		if w.Kind == Commit && !had[w.Lease] && !strings.HasPrefix(w.Lease, resolvedToken) {
			found = append(found, fmt.Sprintf("write %d: committed without an effect", i))
		}
	}
	return found
}

// Freed returns how many times an operator has freed the key.
func (q *Request) Freed() (times int) {
	for _, w := range q.Writes {
		if w.Kind == Forget {
			times++
		}
	}
	return times
}

// unknown checks that an outcome is unknown only without reruns, and only after an attempt has
// begun.
func (q *Request) unknown() (found []string) {
	for i, a := range q.Answers {
		if a.Outcome == Interrupted && (q.Reruns || len(q.Writes) == 0) {
			found = append(found, fmt.Sprintf("answer %d: outcome_unknown", i))
		}
	}
	return found
}

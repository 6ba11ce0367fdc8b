package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Powerless is what the name of a Trouble begins with while nobody can be granted
// anything, since too few of those are there whom it takes: servers that vote, or
// replicas that acknowledge.
const Powerless = "nobody can be granted"

// Minority is what the name of a Trouble begins with that only a minority of a
// quorum's servers has. Who waits for a lock does not notice.
const Minority = "a minority"

// powerless finds the leases that were asked for and granted while nobody could be
// granted anything.
//
// Another call of the process that was under way before may have been granted the key,
// and have left it to this one.
func powerless(s *story) (found []Finding) {
	for _, trouble := range s.Troubles {
		if !strings.HasPrefix(trouble.Name, Powerless) {
			continue
		}
		for _, key := range s.locks {
			for _, l := range s.leases[key] {
				if l.asked <= trouble.From || l.grant.Return >= orNever(trouble.To) || s.left(l, trouble.From) {
					continue
				}
				found = append(found, Finding{Check: "powerless", Text: fmt.Sprintf(
					"%s was granted at %d, although from %d on %s", name(l.grant), l.grant.Return, trouble.From, trouble.Name)})
			}
		}
	}
	return found
}

// left reports whether another call of the same process, which was under way at a
// moment, may have left a lease of its own to this one.
func (s *story) left(l *lease, moment int64) bool {
	return slices.ContainsFunc(s.calls[l.lock], func(other *history.Op) bool {
		return other.Process == l.grant.Process && other.Call <= moment && s.returned(other) >= l.asked
	})
}

// unnoticed reports whether a trouble is one that a call does not suffer from. A Try may:
// it has the time of one command, and a vote that is split may take longer to tell while
// some do not answer.
func unnoticed(t history.Trouble, op *history.Op) bool {
	return strings.HasPrefix(t.Name, Minority) && op.Kind == history.Lock
}

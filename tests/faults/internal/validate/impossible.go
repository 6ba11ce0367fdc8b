package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// NoGrants is what the name of a Trouble begins with while nobody can be granted
// anything, since too few of those are there whom it takes: servers that vote, or
// replicas that acknowledge.
const NoGrants = "nobody can be granted"

// Minority is what the name of a Trouble begins with that only a minority of a
// quorum's servers has. Who waits for a lock does not notice.
const Minority = "a minority"

// impossibleGrants finds the leases that were asked for and granted while nobody could be
// granted anything.
//
// Another call of the process that was under way before may have been granted the key,
// and have left it to this one.
func impossibleGrants(s *summary) (found []Violation) {
	for _, disruption := range s.Disruptions {
		if !strings.HasPrefix(disruption.Name, NoGrants) {
			continue
		}
		for _, key := range s.locks {
			for _, l := range s.leases[key] {
				if l.requested <= disruption.From || l.grant.Return >= timeOrNever(disruption.To) || s.mayInherit(l, disruption.From) {
					continue
				}
				found = append(found, Violation{Check: checkImpossibleGrant, Text: fmt.Sprintf(
					"%s was granted at %d, although from %d on %s", callName(l.grant), l.grant.Return, disruption.From, disruption.Name)})
			}
		}
	}
	return found
}

// mayInherit reports whether another call of the same process, which was under way at a
// moment, may have left a lease of its own to this one.
func (s *summary) mayInherit(l *lease, moment int64) bool {
	return slices.ContainsFunc(s.calls[l.lock], func(other *history.Op) bool {
		return other.Process == l.grant.Process && other.Call <= moment && s.returnedAt(other) >= l.requested
	})
}

// isHarmless reports whether a trouble is one that a call does not suffer from. A Try may:
// it has the time of one command, and a vote that is split may take longer to tell while
// some do not answer.
func isHarmless(t history.Disruption, op *history.Op) bool {
	return strings.HasPrefix(t.Name, Minority) && op.Kind == history.Lock
}

package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// NoGrants is the prefix of the name of a Disruption during which no lock can be granted,
// because too few servers vote or too few replicas acknowledge.
const NoGrants = "no lock can be granted"

// Minority is the prefix of the name of a Disruption of a minority of a quorum. It does not
// affect a call that waits for a lock.
const Minority = "a minority"

// Outage is the prefix of the name of a Disruption during which no server replies, or only a
// minority of a quorum.
const Outage = "an outage"

// impossibleGrants finds leases that were requested and granted during a disruption in
// which no lock can be granted.
//
// Another call of the same process that was made earlier may have been granted the key, and
// handed it off.
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

// mayInherit reports whether an earlier call of the same process, which lasted at a time,
// may have handed its lease off to this one.
func (s *summary) mayInherit(l *lease, moment int64) bool {
	return slices.ContainsFunc(s.calls[l.lock], func(other *history.Op) bool {
		return other.Process == l.grant.Process && other.Call <= moment && s.returnedAt(other) >= l.requested
	})
}

// isHarmless reports whether a disruption does not affect a call. It may affect a Try: a
// Try has the time of one command, and while some servers do not answer, a split vote takes
// longer to detect.
func isHarmless(t history.Disruption, op *history.Op) bool {
	return strings.HasPrefix(t.Name, Minority) && op.Kind == history.Lock
}

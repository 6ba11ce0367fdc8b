package validate

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// earlyGrants finds leases that were granted before the minimal hold of an earlier lease of
// the same key had ended, whose holder had released it.
//
// The key is known to stay locked only if its holder has released it with success: a process
// that dies leaves the key to its TTL, and a release without a reply may free the key.
func earlyGrants(s *summary) (found []Violation) {
	for _, key := range s.locks {
		for i, l := range s.leases[key] {
			if l.isStale() || !l.isKept() || l.end.Kind != history.Release {
				continue
			}
			for _, next := range s.leases[key][i+1:] {
				if next.grant.Return >= min(l.keptUntil(), l.lossFrom) {
					break
				}
				if next.grant.ValidUntil <= l.grant.Return {
					continue // it was granted earlier, and its process learned of it late
				}
				found = append(found, Violation{Check: checkMinHold, Text: fmt.Sprintf(
					"%s was granted at %d, %v before the end of the minimal hold of %s, which was released at %d", callName(next.grant), next.grant.Return,
					time.Duration(l.keptUntil()+int64(clockSkew)-next.grant.Return), callName(l.grant), l.end.Call)})
			}
		}
	}
	return found
}

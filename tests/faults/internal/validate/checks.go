package validate

import "slices"

// The names of the checks. Mutants name them, too.
const (
	checkWellFormed      = "malformed"        // the history contradicts itself
	checkLinearizability = "linearizability"  // no order of the calls of a lock is possible
	checkMutualExclusion = "mutual-exclusion" // two clients relied on the same lock
	checkLimit           = "limit"            // more shared leases were out than their limit
	checkOrder           = "order"            // a waiter was passed by a later request of another process
	checkIdle            = "idle"             // a key stayed free although calls waited for it
	checkSharedReads     = "shared-reads"     // a register changed under a shared lease
	checkStaleHolder     = "stale-holder"     // a client relied on a lock long after it was lost
	checkLeaseEnd        = "lease-end"        // a holder was not notified in time that its lease ended
	checkFencedUpdates   = "fenced-updates"   // an update of a fenced register was lost
	checkUnfencedUpdates = "unfenced-updates" // an update of an unfenced register was lost
	checkFences          = "fences"           // a fencing number did not rise
	checkGoroutines      = "goroutines"       // a client process has too many goroutines
	checkLiveness        = "liveness"         // a call never returned, or a key was never granted again
	checkAttempts        = "attempts"         // no order of the calls of a request is possible
	checkEffects         = "effects"          // a request took effect and ran again as the first
	checkOutcomes        = "errors"           // an outcome has no cause
	checkImpossibleGrant = "impossible-grant" // a lease was granted without the servers that it needs
	checkFailFast        = "fail-fast"        // a new call was not refused at once in a long outage
	checkMinHold         = "min-hold"         // a key was granted before its minimal hold had ended
)

// Checks returns the names of all checks, sorted.
func Checks() []string {
	return slices.Sorted(slices.Values([]string{
		checkWellFormed,
		checkLinearizability,
		checkMutualExclusion,
		checkLimit,
		checkOrder,
		checkIdle,
		checkSharedReads,
		checkStaleHolder,
		checkLeaseEnd,
		checkFencedUpdates,
		checkUnfencedUpdates,
		checkFences,
		checkGoroutines,
		checkLiveness,
		checkAttempts,
		checkEffects,
		checkOutcomes,
		checkImpossibleGrant,
		checkFailFast,
		checkMinHold,
	}))
}

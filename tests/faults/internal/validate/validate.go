// Package validate checks histories.
//
// It checks the guarantees of the lock: no two clients hold a lock at a time, fencing
// numbers rise, a fenced register loses no update, each waiter is served, and each request
// has at most one answer. It uses only what clients called and what was returned, with the
// times, and the accesses to the resource. It trusts no statement of the lock about itself.
//
// Package tests/internal/history of the main module checks mutual exclusion and limits, here as
// in the other tests. Its check of fences takes the order of the grants from callers of one
// machine. Here servers lose data and clients are late, so a fence is compared with those of
// leases whose grant had returned before.
package validate

import (
	"fmt"
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A Violation is something in a history that must not be.
type Violation struct {
	Check string // the name of the check
	Text  string
	// Picture draws it to an HTML file; nil if there is nothing to draw.
	Picture func(path string) error
}

// String returns the violation on one line.
func (f Violation) String() string { return f.Check + ": " + f.Text }

// All returns the violations of all checks, or nothing. If a history contradicts itself,
// All returns only that.
func All(h *history.History) []Violation {
	if found := malformed(h); len(found) > 0 {
		return found
	}
	s := summarize(h)
	return slices.Concat(
		lockHistories(s),
		overlappingHolders(s),
		overtakenCalls(s),
		idleKeys(s),
		changedReads(s),
		staleHolders(s),
		lateLeaseEnds(s),
		lostUpdates(s),
		lowLeaseFences(s),
		lowFastFences(s),
		goroutineCounts(s),
		unservedCalls(s),
		attemptHistories(s),
		forgottenEffects(s),
		unexplainedOutcomes(s),
		wrongPayloads(s),
		impossibleGrants(s),
		lateRefusals(s),
		earlyGrants(s),
	)
}

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

// Checks returns the names of all checks.
func Checks() []string {
	return []string{
		checkWellFormed, checkLinearizability, checkMutualExclusion, checkLimit, checkOrder, checkIdle, checkSharedReads, checkStaleHolder, checkLeaseEnd,
		checkFencedUpdates, checkUnfencedUpdates, checkFences, checkGoroutines, checkLiveness, checkAttempts, checkEffects, checkOutcomes,
		checkImpossibleGrant, checkFailFast, checkMinHold,
	}
}

// malformed finds contradictions in the history itself. They are mistakes of the campaign,
// not of the lock.
func malformed(h *history.History) (found []Violation) {
	report := func(format string, args ...any) {
		found = append(found, Violation{Check: checkWellFormed, Text: fmt.Sprintf(format, args...)})
	}
	if h.TTL <= 0 || h.Ended < h.Begun || h.Ended <= 0 {
		report("ttl %d, begun at %d, ended at %d", h.TTL, h.Begun, h.Ended)
	}
	granted := map[string]*history.Op{}
	for i := range h.Ops {
		op := &h.Ops[i]
		switch {
		case op.Call <= 0, op.Return != 0 && op.Return < op.Call:
			report("%s has no time", callName(op))
		case op.Return == 0 && op.Outcome != history.None:
			report("%s has an outcome and never returned", callName(op))
		case op.Kind != history.LeaseEnd && op.Return != 0 && op.Outcome == history.None:
			report("%s returned without an outcome", callName(op))
		case op.Limit < history.Unlimited:
			report("%s has the limit %d", callName(op), op.Limit)
		}
		if op.Outcome != history.Granted {
			continue
		}
		if op.Lease == "" || op.ValidUntil == 0 {
			report("%s was granted without a name or a validity", callName(op))
		}
		if granted[op.Lease] != nil {
			report("%s was granted a lease of the same name as %s", callName(op), callName(granted[op.Lease]))
		}
		granted[op.Lease] = op
	}
	for i := range h.Ops {
		op := &h.Ops[i]
		ofLease := []history.Kind{history.Extend, history.Release, history.LeaseEnd, history.Commit, history.Seal, history.Abort}
		if slices.Contains(ofLease, op.Kind) && granted[op.Lease] == nil {
			report("%s names a lease that was not granted", callName(op))
		}
	}
	return found
}

// callName identifies a call for a reader of the history.
func callName(op *history.Op) string {
	text := fmt.Sprintf("%s(%s) of client %d in process %d, called at %d", op.Kind, op.Key, op.Client, op.Process, op.Call)
	if op.Lease != "" {
		text += ", lease " + op.Lease
	}
	switch {
	case op.Limit == history.Unlimited:
		text += ", shared"
	case op.IsShared():
		text += fmt.Sprintf(", one of %d permits", op.Limit)
	}
	if op.Fence != 0 {
		text += fmt.Sprintf(", fence %d", op.Fence)
	}
	return text
}

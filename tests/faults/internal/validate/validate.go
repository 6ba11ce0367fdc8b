package validate

import (
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

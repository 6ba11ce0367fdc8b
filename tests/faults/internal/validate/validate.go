package validate

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A Violation is something that a history shows and that must not be.
type Violation struct {
	Check string // which check it is of
	Text  string
	// Picture fastLeases it to a file of HTML; nil where there is nothing to draw.
	Picture func(path string) error
}

// String returns the violation as one line.
func (f Violation) String() string { return f.Check + ": " + f.Text }

// All returns what all checks find in the history; nothing if it is as it should
// be. A history that contradicts itself is found to be so, and not judged.
func All(h *history.History) []Violation {
	if found := malformed(h); len(found) > 0 {
		return found
	}
	s := summarize(h)
	return slices.Concat(
		lockHistories(s),
		overlappingHolders(s),
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
	)
}

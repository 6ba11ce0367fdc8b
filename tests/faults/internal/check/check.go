package check

import (
	"slices"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A Finding is something that a history shows and that must not be.
type Finding struct {
	Check string // which check it is of
	Text  string
	// Picture fastLeases it to a file of HTML; nil where there is nothing to draw.
	Picture func(path string) error
}

// String returns the finding as one line.
func (f Finding) String() string { return f.Check + ": " + f.Text }

// All returns what all checks find in the history; nothing if it is as it should
// be. A history that contradicts itself is found to be so, and not judged.
func All(h *history.History) []Finding {
	if found := malformed(h); len(found) > 0 {
		return found
	}
	s := read(h)
	return slices.Concat(
		server(s),
		overlaps(s),
		ghosts(s),
		untold(s),
		registers(s),
		fences(s),
		fastLeases(s),
		sizes(s),
		stranded(s),
		attempts(s),
		effects(s),
		refusals(s),
		payloads(s),
		powerless(s),
	)
}

package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// A plan says who calls in a run, and what fails. Rapid shrinks a plan that fails: it leaves callers and faults out. All
// else follows from the seed, except the order of what happens at the same time, and what the engine itself chooses at
// random. So a run that fails may not fail again.
type plan struct {
	mix
	seed    uint64
	callers []int // their numbers
	injects bool  // commands that are slow or lost
	forges  bool  // hints
	loses   bool  // hints
}

// candidates is how many callers may come. Half of them do.
const candidates = 160

var (
	comers = rapid.Custom(func(t *rapid.T) (all []int) {
		for i := range candidates {
			if rapid.Bool().Draw(t, "comes") {
				all = append(all, i)
			}
		}
		return all
	})
	mostly = rapid.Custom(func(t *rapid.T) bool { return slices.Contains(rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, ""), true) })
)

func (m mix) plan(t *rapid.T) plan {
	return plan{
		mix: m, seed: rapid.Uint64().Draw(t, "seed"), callers: comers.Draw(t, "callers"),
		injects: mostly.Draw(t, "commands fail"), forges: mostly.Draw(t, "hints are forged"), loses: mostly.Draw(t, "hints are lost"),
	}
}

// failures keeps the errors of a run, so that only rapid fails the test.
type failures struct {
	testing.TB
	mu             sync.Mutex
	formats, texts []string
}

func (f *failures) Error(args ...any) { f.add(fmt.Sprint(args...), fmt.Sprint(args...)) }

func (f *failures) Errorf(format string, args ...any) { f.add(format, fmt.Sprintf(format, args...)) }

func (f *failures) add(format, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.formats, f.texts = append(f.formats, format), append(f.texts, text)
}

package core_test

import (
	"context"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The release of an attempt says how the attempt ended, and so does Committed. Other events
// have no ending.
func TestEventsSayHowAnAttemptEnded(t *testing.T) {
	t.Parallel()
	for ending, test := range map[core.Ending]struct {
		end       func(a *core.Attempt) error
		committed int
	}{
		core.Commit:    {func(a *core.Attempt) error { return a.Commit(context.Background(), []byte("answer")) }, 1},
		core.Seal:      {func(a *core.Attempt) error { return a.Seal(context.Background()) }, 1},
		core.Abort:     {func(a *core.Attempt) error { return a.Abort(context.Background()) }, 0},
		core.Interrupt: {func(a *core.Attempt) error { return a.Interrupt(context.Background()) }, 0},
	} {
		t.Run(ending.String(), func(t *testing.T) {
			t.Parallel()
			locks, events := observed(t, newEmbedded(t))
			noError(t, test.end(begin(t, locks, "k")))
			suite.Eventually(t, "the release is observed", func() bool { return len(events.of(core.Released)) == 1 })
			committed := events.of(core.Committed)
			if len(committed) != test.committed {
				t.Errorf("%d commits", len(committed))
			}
			for _, event := range events.all() {
				want := core.Ending(0)
				if event.Kind == core.Released || event.Kind == core.Committed {
					want = ending
				}
				if event.Ending != want || !event.Attempt {
					t.Errorf("%v: ending %v, attempt %t", event.Kind, event.Ending, event.Attempt)
				}
			}
			release(t, lock(t, locks, "k"))
			suite.Eventually(t, "the plain release is observed", func() bool { return len(events.of(core.Released)) == 2 })
			if plain := events.of(core.Released)[1]; plain.Ending != 0 || plain.Attempt {
				t.Errorf("a plain lock: %+v", plain)
			}
		})
	}
	if got := core.Ending(0).String(); got != "unknown" {
		t.Error(got)
	}
}

package crash

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Redis, or its data, is lost while a handler runs.
func TestRedisIsLostWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	s := newTestbed(t, "net/http")
	survivors := []*process{s.start(t, nil, patiently)}
	s.loadScripts(survivors[0])
	t.Run("when", func(t *testing.T) {
		run := func(name string, outage outage, changes ...func(*orders)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := &crashCase{testbed: s, t: t, victim: s.start(t, nil, changes...), survivors: survivors}
				c.first = request{policy: outage.policy, key: fmt.Sprintf("outage-%d", c.victim.number)}
				c.runOutage(outage)
				// The client of the process would wait for replies to held commands.
				for _, release := range c.held {
					release()
				}
				c.victim.stop()
			})
		}
		for name, outage := range newOutages() {
			run(name, outage)
		}
		for name, outage := range newDeletions() {
			run(name, outage, patiently)
		}
	})
	survivors[0].stop()
	s.wantNoLocksLeft(t)
}

func (c *crashCase) runOutage(outage outage) {
	c.t.Helper()
	waiter := make(chan string, 1)
	c.ledger.hook(c.first.key, func(v ledgerCall) bool {
		if !v.Charge || v.Process != c.victim.number || v.Number > 1 {
			return true
		}
		if outage.withWaiter {
			c.clients.Go(func() { waiter <- c.outcome(c.victim) })
			suite.Eventually(c.t, "the duplicate waits", func() bool { return c.hasReported(c.victim, waiting) })
		}
		outage.breaks(c)
		return true
	})
	first := c.mustAsk(c.victim, c.first)
	if !first.Fine || first.Replayed {
		c.t.Errorf("the first client got %v", first)
	}
	outage.mends(c)
	if outage.withWaiter {
		if got := suite.Receive(c.t, "the waiting duplicate is answered", waiter); got != outage.outcome {
			c.t.Errorf("the waiting duplicate got %q, want %q", got, outage.outcome)
		}
		c.clients.Wait()
	} else {
		c.wantNext(outage.outcome)
	}
	last := outage.outcome
	if last == "fine" {
		last = "replayed"
	}
	c.wantNext(last, last)
	for _, event := range []string{refused, unstored, restored} {
		if got, want := c.hasReported(c.victim, event), slices.Contains(outage.reports, event); got != want {
			c.t.Errorf("reported %q: %v, want %v", event, got, want)
		}
	}
	if end := c.answers[len(c.answers)-1]; end.Replayed && end.same(first) == outage.firstDiffers {
		c.t.Errorf("the first answer is %v, the last one %v", first, end)
	}
	seen := c.observe(c.first, c.answers, c.victim, c.survivors[0])
	if found := strings.Join(seen.Violations(), "; "); withoutIndexes(found) != outage.violations {
		c.t.Errorf("found %q, want %q", found, outage.violations)
	}
	if len(seen.Effects) != outage.effects {
		c.t.Errorf("charges %+v, want %d", seen.Effects, outage.effects)
	}
}

func withoutIndexes(found string) string {
	for i := range 10 {
		found = strings.ReplaceAll(found, fmt.Sprintf("write %d: ", i), "")
	}
	return found
}

// outcome sends the request to a process. It returns the code of the answer, or "fine", or
// "replayed".
func (c *crashCase) outcome(p *process) string {
	c.t.Helper()
	switch a := c.mustAsk(p, c.first); {
	case a.Replayed:
		return "replayed"
	case a.Fine:
		return "fine"
	default:
		return a.Code
	}
}

// wantNext fails the test unless a survivor's next answers have these outcomes.
func (c *crashCase) wantNext(outcomes ...string) {
	c.t.Helper()
	for _, want := range outcomes {
		if got := c.outcome(c.survivors[0]); got != want {
			c.t.Errorf("got %q, want %q", got, want)
		}
	}
}

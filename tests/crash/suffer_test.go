package crash

import (
	"fmt"
	"strings"
	"testing"
)

// Redis, or what is in it, is lost while a handler runs.
//
//faults:row 16 loss: idempotent requests
//faults:row 47
func TestRedisIsLostWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, "net/http")
	survivors := []*process{s.open(t, nil)}
	s.warm(survivors[0])
	played := newCrowd(6)
	for name, trouble := range newTroubles() {
		played.play(t, name, func(t *testing.T) {
			c := &crash{site: s, t: t, victim: s.open(t, nil), survivors: survivors}
			c.first = question{policy: trouble.policy, key: fmt.Sprintf("trouble-%d", c.victim.number)}
			c.suffer(trouble)
			c.victim.stop()
		})
	}
	played.wait()
	survivors[0].stop()
	s.wantTidy(t)
}

// suffer lets the trouble happen to one request.
func (c *crash) suffer(trouble trouble) {
	waiter := make(chan string, 1)
	c.ledger.hook(c.first.key, func(v visit) bool {
		if !v.Charge || v.Process != c.victim.number || v.Number > 1 {
			return true
		}
		if trouble.waited {
			c.clients.Go(func() { waiter <- c.outcome(c.victim) })
			await(c.t, "the duplicate waits", func() bool { return c.toldBy(c.victim, waiting) })
		}
		trouble.breaks(c)
		return true
	})
	first := c.mustAsk(c.victim, c.first)
	if !first.Fine || first.Replayed {
		c.t.Errorf("the first client got %v", first)
	}
	trouble.mends(c)
	if trouble.waited {
		if got := <-waiter; got != trouble.outcome {
			c.t.Errorf("who waited got %q, want %q", got, trouble.outcome)
		}
		c.clients.Wait()
	} else {
		c.wantNext(trouble.outcome)
	}
	last := trouble.outcome
	if last == "fine" {
		last = "replayed"
	}
	c.wantNext(last, last)
	for _, word := range []string{refused, unstored, restored} {
		if got, want := c.toldBy(c.victim, word), strings.Contains(strings.Join(trouble.told, " "), word); got != want {
			c.t.Errorf("told %q: %v, want %v", word, got, want)
		}
	}
	if end := c.answers[len(c.answers)-1]; end.Replayed && end.same(first) == trouble.own {
		c.t.Errorf("the first answer is %v, the last one %v", first, end)
	}
	told := c.story(c.first, c.answers, c.victim, c.survivors[0])
	if found := strings.Join(told.faults(), "; "); stripped(found) != trouble.meant {
		c.t.Errorf("found %q, want %q", found, trouble.meant)
	}
	if len(told.effects) != trouble.effects {
		c.t.Errorf("charges %+v, want %d", told.effects, trouble.effects)
	}
}

// stripped returns faults without the places of writes.
func stripped(found string) string {
	for i := range 10 {
		found = strings.ReplaceAll(found, fmt.Sprintf("write %d: ", i), "")
	}
	return found
}

// outcome asks a process, and returns the code of its answer, or "fine", or
// "replayed".
func (c *crash) outcome(p *process) string {
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

// wantNext fails the test unless a survivor gives answers of these outcomes.
func (c *crash) wantNext(outcomes ...string) {
	c.t.Helper()
	for _, want := range outcomes {
		if got := c.outcome(c.survivors[0]); got != want {
			c.t.Errorf("got %q, want %q", got, want)
		}
	}
}

package crew

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/faults/internal/fault"
	"github.com/reqlock/reqlock/faults/internal/history"
	"github.com/reqlock/reqlock/internal/redistest"
)

var _ fault.Crew = (*Crew)(nil)

// enough is how long processes may take to end in a test, on a busy machine.
const enough = 30 * time.Second

// on starts a crew on a server of its own.
func on(t *testing.T, s Settings) (*Crew, *redistest.Server) {
	t.Helper()
	servers := redistest.OnServer.Start(t)
	s.Redis = servers.Options()
	return Start(t, s), servers.Servers()[0]
}

// finished ends a crew and returns its history.
func finished(c *Crew) history.History {
	c.tb.Helper()
	c.Finish(enough)
	var h history.History
	c.Fill(&h)
	return h
}

func TestAHistoryHasAllKindsOfCalls(t *testing.T) {
	begun := time.Now()
	c, _ := on(t, Settings{Seed: 1})
	c.AwaitGrants(1500)
	h := finished(c)
	took := time.Since(begun)
	count := map[history.Kind]map[history.Outcome]int{}
	for _, op := range h.Ops {
		if count[op.Kind] == nil {
			count[op.Kind] = map[history.Outcome]int{}
		}
		count[op.Kind][op.Outcome]++
	}
	t.Logf("%d calls in %v, %.0f a second; %d accesses, %d effects", len(h.Ops), took, float64(len(h.Ops))/took.Seconds(), len(h.Accesses), len(h.Effects))
	t.Log(count)
}

package traffic

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	c, server := startOnServer(t, Settings{Keys: 1, Attempts: -1, SharedTurns: -1, Processes: 2})
	c.AwaitGrants(20)
	blockFirstLock(c, server, 1)
	before := clock.Now()
	c.Kill(1)
	after := clock.Now()
	if left := c.Processes(); !slices.Equal(left, []int{0, 2}) {
		t.Errorf("there are %v", left)
	}
	server.Client(t).Del(t.Context(), c.Keys()[0])
	suite.Eventually(t, "the new process is granted something", func() bool {
		return len(c.journal.calls(func(op history.Op) bool { return op.Process == 2 && op.Outcome == history.Granted })) > 0
	})
	h := finish(c)
	if len(h.ProcessFailures) != 1 || h.ProcessFailures[0].Process != 1 || h.ProcessFailures[0].From < before || h.ProcessFailures[0].From > after || h.ProcessFailures[0].To != 0 {
		t.Errorf("deaths %+v", h.ProcessFailures)
	}
	clients := map[int][]int{} // by process
	for _, op := range h.Ops {
		if !slices.Contains(clients[op.Process], op.Client) {
			clients[op.Process] = append(clients[op.Process], op.Client)
		}
		switch neverReturned := op.Return == 0; {
		case neverReturned && op.Process != 1:
			t.Errorf("%+v", op)
		case op.Process == 1 && op.Call > after:
			t.Errorf("the dead calls: %+v", op)
		}
	}
	if open := unboundedWaits(c, 1); len(open) != 2 || open[0].Outcome != history.None {
		t.Errorf("the killed process has results %+v", open)
	}
	slices.Sort(clients[1])
	slices.Sort(clients[2])
	if !slices.Equal(clients[1], []int{2, 3}) || !slices.Equal(clients[2], []int{2, 3}) {
		t.Errorf("clients %v", clients)
	}
}

func TestProcessIsPaused(t *testing.T) {
	t.Parallel()
	c, _ := startOnServer(t, Settings{StallTime: time.Millisecond})
	c.AwaitGrants(20)
	before := clock.Now()
	c.Stop(1)
	stood := clock.Now()
	c.AwaitGrants(100) // of the other processes
	if !slices.Contains(c.Processes(), 1) {
		t.Errorf("there are %v", c.Processes())
	}
	continued := clock.Now()
	c.Continue(1)
	after := clock.Now()
	suite.Eventually(t, "it goes on", func() bool {
		return len(c.journal.calls(func(op history.Op) bool { return op.Process == 1 && op.Call > after })) > 0
	})
	h := finish(c)
	for _, op := range h.Ops {
		if op.Process == 1 && (op.Call > stood && op.Call < continued || op.Return > stood && op.Return < continued) {
			t.Errorf("%+v while it was paused from %d to %d", op, stood, continued)
		}
	}
	if !slices.ContainsFunc(h.Lags, func(l history.Lag) bool { return l.Process == 1 && l.From < continued && l.To >= continued }) {
		t.Errorf("it has not noticed, at %d: %+v", continued, h.Lags)
	}
	if len(h.ProcessFailures) != 1 {
		t.Fatalf("deaths %+v", h.ProcessFailures)
	}
	if d := h.ProcessFailures[0]; d.Process != 1 || d.From < before || d.From > stood || d.To < continued || d.To > after {
		t.Errorf("%+v", d)
	}
}

func TestPausedProcessIsKilled(t *testing.T) {
	t.Parallel()
	c, _ := startOnServer(t, Settings{Processes: 2})
	c.AwaitGrants(10)
	c.Stop(0)
	c.Kill(0)
	h := finish(c)
	if len(h.ProcessFailures) != 2 || h.ProcessFailures[0].To == 0 || h.ProcessFailures[1].To != 0 || h.ProcessFailures[1].From < h.ProcessFailures[0].To {
		t.Errorf("%+v", h.ProcessFailures)
	}
}

// A paused process continues at the end of a run, and ends.
func TestPausedProcessFinishes(t *testing.T) {
	t.Parallel()
	c, _ := startOnServer(t, Settings{Processes: 2})
	c.AwaitGrants(10)
	c.Stop(0)
	if h := finish(c); len(h.ProcessFailures) != 1 || h.ProcessFailures[0].To == 0 {
		t.Errorf("%+v", h.ProcessFailures)
	}
}

func TestStuckClientsAreReported(t *testing.T) {
	t.Parallel()
	var h history.History
	result := programtb.Run(t.Context(), t.Name(), func(tb testing.TB) {
		c, server := startOnServer(tb, Settings{Keys: 1, Attempts: -1, SharedTurns: -1, Processes: 1})
		c.AwaitGrants(10)
		blockFirstLock(c, server, 0)
		c.Finish(50 * time.Millisecond)
		c.Fill(&h)
		if left := c.Processes(); len(left) > 0 {
			tb.Errorf("%v are left", left)
		}
	})
	if result.Failed {
		t.Error("it is for the checks to say so")
	}
	for _, want := range []string{"client 0 is stuck in a lock of lock-0", "client 1 is stuck", "SIGQUIT", "client.(*client).takeTurns"} {
		if !strings.Contains(result.Log, want) {
			t.Errorf("the log does not show %q:\n%s", want, result.Log)
		}
	}
	open := 0
	for _, op := range h.Ops {
		if op.Return == 0 {
			open++
		}
	}
	if open != 2 || len(h.ProcessFailures) > 0 {
		t.Errorf("%d calls have not returned, deaths %v", open, h.ProcessFailures)
	}
}

package traffic

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestClientsAtFullSpeedReportOnlyFences(t *testing.T) {
	t.Parallel()
	c, server := startOnServer(t, Settings{Seed: 1, Processes: 2, Clients: 2, FullSpeed: true})
	c.AwaitGrants(2000)
	h := finish(c)
	if server.Client(t).Exists(t.Context(), c.Keys()[1]).Val() != 0 || len(h.Accesses) != 0 || len(h.Effects) != 0 {
		t.Errorf("%d accesses, %d effects", len(h.Accesses), len(h.Effects))
	}
	processes := map[int]bool{}
	for _, d := range h.FastLeases {
		processes[d.Process] = true
		if d.Key != "lock-0" || d.Fence <= 0 || d.Call <= 0 || d.Return < d.Call {
			t.Fatalf("got %+v", d)
		}
	}
	for _, op := range h.Ops {
		if op.Outcome != history.Unavailable && op.Outcome != history.Granted {
			t.Errorf("got %+v", op)
		}
	}
	if len(h.FastLeases) < 2000 || len(processes) != 2 || c.Grants() < len(h.FastLeases) {
		t.Errorf("%d leases of %d processes, %d grants", len(h.FastLeases), len(processes), c.Grants())
	}
}

func TestEachProcessReportsItsSize(t *testing.T) {
	t.Parallel()
	c, _ := startOnServer(t, Settings{Seed: 1, Processes: 2})
	c.AwaitGrants(1)
	h := finish(c)
	for _, size := range h.Sizes {
		if size.Goroutines < 2 || size.At <= 0 {
			t.Errorf("got %+v", size)
		}
	}
	if len(h.Sizes) != 2 {
		t.Errorf("%d sizes", len(h.Sizes))
	}
}

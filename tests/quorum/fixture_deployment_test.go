package quorum

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A deployment is the nodes and the processes on which rows run, one after the other.
type deployment struct {
	nodes     nodes
	processes []*process
	history   *history.Recorder
}

// newDeployment starts a deployment that ends with the test. The nodes are still in
// quarantine and do not vote.
func newDeployment(t *testing.T, processes int, opts ...core.Option) *deployment {
	t.Helper()
	d := &deployment{nodes: startNodes(t), history: history.NewRecorder()}
	for i := range processes {
		d.processes = append(d.processes, newProcess(t, fmt.Sprintf("process %d", i), d.nodes, d.history, opts...))
	}
	return d
}

// awaitAllVotes returns when a lease of each process has had the votes of all nodes. A
// process that has seen a node in quarantine checks it again later than other processes.
func (d *deployment) awaitAllVotes(t *testing.T, key string) {
	t.Helper()
	for _, p := range d.processes {
		h := p.hold(t, key)
		d.awaitVotes(t, h)
		if err := h.release(); err != nil {
			t.Errorf("release %s: %v", key, err)
		}
	}
}

// votePause is the pause between two checks of the votes of all nodes.
const votePause = 20 * time.Millisecond

func (d *deployment) awaitVotes(t *testing.T, h *holder) {
	t.Helper()
	suite.Eventually(t, "all nodes vote for the holder of "+h.Key(), suite.Every(votePause, func() bool {
		return d.nodes.votes(t, h.Key(), h.Token()) == nodeCount || h.Context().Err() != nil
	}))
	h.wantValid(t)
}

// awaitFree returns when no node has a value for the key.
func (d *deployment) awaitFree(t *testing.T, key string) {
	t.Helper()
	suite.Eventually(t, "no node votes for a holder of "+key, suite.Every(votePause, func() bool {
		return d.nodes.votes(t, key, "") == nodeCount
	}))
}

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds the wait for what must happen. It is far longer than that takes on a
// busy machine.
const patience = 30 * time.Second

// checkHistory fails the test if holds overlap, and removes all holds.
func checkHistory(t *testing.T, r *history.Recorder) {
	t.Helper()
	h := r.Take()
	history.Report(t, h, map[string][]string{"exclusion": h.Holds().Exclusion()})
}

// runSection is the critical section under the lock whose lease ctx carries. It lasts
// for a time, or until the lease ends.
func runSection(ctx context.Context, r *history.Recorder, holder string, duration time.Duration) {
	lease, _ := core.LeaseFromContext(ctx)
	held := r.Granted(history.Op{Name: holder}, lease)
	defer held.End()
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

package quorum

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A stage is the nodes and the processes with which rows are played, one after the
// other.
type stage struct {
	nodes     nodes
	processes []*process
	history   *history
}

// newStage starts them, until the end of the test. The nodes give no votes yet.
func newStage(t *testing.T, processes int, opts ...core.Option) *stage {
	t.Helper()
	s := &stage{nodes: startNodes(t), history: newHistory()}
	for i := range processes {
		s.processes = append(s.processes, newProcess(t, fmt.Sprintf("process %d", i), s.nodes, s.history, opts...))
	}
	return s
}

// awaitAllVotes returns when a lease of each process has had the votes of all nodes. One
// that has seen a node too young to vote looks again later than the others may.
func (s *stage) awaitAllVotes(t *testing.T, key string) {
	t.Helper()
	for _, p := range s.processes {
		h := p.hold(t, key)
		s.awaitVotes(t, h)
		if err := h.end(); err != nil {
			t.Errorf("release %s: %v", key, err)
		}
	}
}

// awaitVotes returns when this lease has the votes of all nodes.
func (s *stage) awaitVotes(t *testing.T, h *held) {
	t.Helper()
	await(t, "all nodes vote for the holder of "+h.lease.Key(), func() bool {
		return s.nodes.votes(t, h.lease.Key(), h.lease.Token()) == size || h.lease.Context().Err() != nil
	})
	h.wantKept(t)
}

// awaitFree returns when no node has anything for the key.
func (s *stage) awaitFree(t *testing.T, key string) {
	t.Helper()
	await(t, "no node votes for a holder of "+key, func() bool { return s.nodes.votes(t, key, "") == size })
}

// A crowd is calls under way.
type crowd struct {
	t     *testing.T
	stage *stage
	group sync.WaitGroup
}

func (s *stage) crowd(t *testing.T) *crowd { return &crowd{t: t, stage: s} }

// lock makes a process lock a key for a moment. It must get it.
func (c *crowd) lock(p *process, w way, key string) {
	by := p.name + " by " + w.name
	if err := w.lock(p, by, key); err != nil {
		c.t.Errorf("%s, %s: %v", key, by, err)
	}
}

// all makes each process lock the key in each of these ways. It returns when all
// have asked, or are just about to.
func (c *crowd) all(key string, ways ...way) {
	var asking sync.WaitGroup
	for _, p := range c.stage.processes {
		for _, w := range ways {
			asking.Add(1)
			c.group.Go(func() {
				asking.Done()
				c.lock(p, w, key)
			})
		}
	}
	asking.Wait()
}

// keepOn makes each process lock the key again and again, in any way, until stop
// is closed.
func (c *crowd) keepOn(key string, stop <-chan struct{}) {
	for _, p := range c.stage.processes {
		c.group.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(rand.N(pace)):
					c.lock(p, ways()[rand.IntN(len(ways()))], key)
				}
			}
		})
	}
}

// pace is how long one who locks a key again and again is away at the longest.
const pace = 40 * time.Millisecond

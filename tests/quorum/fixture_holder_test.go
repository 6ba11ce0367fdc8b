package quorum

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A holder keeps a lease until release.
type holder struct {
	*history.Lease
	process *process
}

func (p *process) hold(t *testing.T, key string, opts ...core.Option) *holder {
	t.Helper()
	locks := p.locks.With(append([]core.Option{core.WithWait(patience)}, opts...)...)
	lease, err := p.history.Lock(context.Background(), locks, history.Op{Name: p.name + ", a holder", Key: key})
	if err != nil {
		t.Fatalf("hold %s: %v", key, err)
	}
	t.Cleanup(func() { _ = lease.Lease.Release(context.Background()) }) // if the test fails before
	return &holder{lease, p}
}

// release ends the hold and returns the error of Release. If this process did not run
// for a while, the release may be unconfirmed.
func (h *holder) release() error {
	started := time.Now()
	err := h.Release(context.Background())
	if h.process.mayExcuse(err, started) {
		return nil
	}
	return err
}

// wantValid fails the test if the lease is lost.
func (h *holder) wantValid(t *testing.T) {
	t.Helper()
	if h.Context().Err() != nil {
		t.Errorf("%s is lost: %v", h.Key(), context.Cause(h.Context()))
	}
}

// awaitRenewal returns when the lease was renewed by a command sent after that time.
func (h *holder) awaitRenewal(t *testing.T, since time.Time) {
	t.Helper()
	suite.Eventually(t, "the lease is renewed, or lost", func() bool {
		return h.ValidUntil().After(since.Add(ttl)) || h.Context().Err() != nil
	})
	h.wantValid(t)
}

func (h *holder) awaitLoss(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "the holder is informed of the loss", func() bool { return !h.LostAt().IsZero() })
}

// callers are calls that run at the same time.
type callers struct {
	t          *testing.T
	deployment *deployment
	group      sync.WaitGroup
}

func (d *deployment) callers(t *testing.T) *callers { return &callers{t: t, deployment: d} }

// lock makes a process lock a key for a short section. The process must get the lock.
func (c *callers) lock(p *process, m method, key string) {
	holder := p.name + " by " + m.name
	if err := m.lock(p, holder, key); err != nil {
		c.t.Errorf("%s, %s: %v", key, holder, err)
	}
}

// lockByEach makes each process lock the key by each of these methods. It returns when
// each call has begun, or is about to begin.
func (c *callers) lockByEach(key string, methods ...method) {
	var started sync.WaitGroup
	for _, p := range c.deployment.processes {
		for _, m := range methods {
			started.Add(1)
			c.group.Go(func() {
				started.Done()
				c.lock(p, m, key)
			})
		}
	}
	started.Wait()
}

// lockUntil makes each process lock the key repeatedly, by any method, until stop is
// closed.
func (c *callers) lockUntil(stop <-chan struct{}, key string) {
	for _, p := range c.deployment.processes {
		c.group.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(rand.N(maxPause)):
					c.lock(p, methods()[rand.IntN(len(methods()))], key)
				}
			}
		})
	}
}

// maxPause is the longest pause between two calls of a process.
const maxPause = 120 * time.Millisecond

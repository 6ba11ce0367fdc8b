package quorum

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

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
const maxPause = 40 * time.Millisecond

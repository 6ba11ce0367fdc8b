// Package inflight counts work in flight and lets callers wait, within a context,
// until none is left.
//
// It differs from a sync.WaitGroup in two ways: Wait can be given up without leaving a
// goroutine behind, and the count may rise again while a caller waits.
package inflight

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Counter counts work in flight. The zero value counts none and is ready for
// use. It is safe for concurrent use and must not be copied after first use.
type Counter struct {
	n    atomic.Int64
	mu   sync.Mutex
	none chan struct{} // closed when n falls to zero; nil while no caller waits
}

// Add counts one more piece of work.
func (c *Counter) Add() { c.n.Add(1) }

// Done ends one piece of work that Add counted.
func (c *Counter) Done() {
	switch left := c.n.Add(-1); {
	case left < 0:
		panic("reqlock: inflight: Done without Add")
	case left == 0:
		c.mu.Lock()
		c.notify()
		c.mu.Unlock()
	}
}

// notify wakes the callers of Wait if no work is left. Each caller of Wait calls it, too,
// after it has registered, so that none misses the end of the work.
func (c *Counter) notify() {
	if c.none != nil && c.n.Load() == 0 {
		close(c.none)
		c.none = nil
	}
}

// Wait returns nil once no work is left, or ctx's error when ctx ends first.
func (c *Counter) Wait(ctx context.Context) error {
	if c.n.Load() == 0 {
		return nil
	}
	c.mu.Lock()
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.notify()
	c.mu.Unlock()

	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

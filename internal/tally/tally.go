// Package tally counts work under way and lets one wait, within a context,
// until none is left.
//
// It is a sync.WaitGroup whose Wait can be given up without leaving a
// goroutine behind, and whose count may rise again while somebody waits.
package tally

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Tally counts work under way. The zero value counts none and is ready for
// use. It is safe for concurrent use and must not be copied after first use.
type Tally struct {
	n    atomic.Int64
	mu   sync.Mutex
	none chan struct{} // closed when n falls to zero; nil while nobody waits
}

// Add counts one more piece of work.
func (t *Tally) Add() { t.n.Add(1) }

// Done ends one piece of work that Add counted.
func (t *Tally) Done() {
	switch left := t.n.Add(-1); {
	case left < 0:
		panic("reqlock: tally: Done without Add")
	case left == 0:
		t.mu.Lock()
		t.tell()
		t.mu.Unlock()
	}
}

// tell tells those who wait if no work is left. Whoever waits looks for himself
// first, so none is missed.
func (t *Tally) tell() {
	if t.none != nil && t.n.Load() == 0 {
		close(t.none)
		t.none = nil
	}
}

// Wait returns nil once no work is left, or ctx's error when ctx ends first.
func (t *Tally) Wait(ctx context.Context) error {
	if t.n.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.tell()
	t.mu.Unlock()

	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

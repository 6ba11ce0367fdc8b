// Package tally counts work under way and lets one wait, within a context,
// until none is left.
//
// It is a sync.WaitGroup whose Wait can be given up without leaving a
// goroutine behind, and whose count may rise again while somebody waits.
package tally

import (
	"context"
	"sync"
)

// A Tally counts work under way. The zero value counts none and is ready for
// use. It is safe for concurrent use and must not be copied after first use.
type Tally struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n falls to zero; nil while nobody waits
}

// Add counts one more piece of work.
func (t *Tally) Add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

// Done ends one piece of work that Add counted.
func (t *Tally) Done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n < 0 {
		panic("reqlock: tally: Done without Add")
	}
	if t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// Wait returns nil once no work is left, or ctx's error when ctx ends first.
func (t *Tally) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()

	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

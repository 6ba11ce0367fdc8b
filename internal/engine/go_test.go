package engine

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// All functions that Go runs have ended when Close returns, even if both start at the
// same moment. The loop waits for each function that it starts: on one CPU a loop that
// never waits runs until the scheduler stops it after 10 ms, in each of the rounds.
func TestNoFunctionOfGoRunsAfterClose(t *testing.T) {
	for range suite.Size(1_000, 5_000) {
		e, _, _ := newEngine()
		var closed, late atomic.Bool
		var group sync.WaitGroup
		first, ran := make(chan struct{}), make(chan struct{})
		var once sync.Once
		group.Go(func() {
			for e.Go(func() {
				if closed.Load() {
					late.Store(true)
				}
				ran <- struct{}{}
			}) {
				<-ran
				once.Do(func() { close(first) })
			}
		})
		<-first
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed.Store(true)
		group.Wait()
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late.Load() {
			t.Fatal("something runs, and Close did not wait for it")
		}
	}
}

package engine

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Whatever runs aside has ended when Close returns, however close they come.
func TestNothingRunsAsideAfterClose(t *testing.T) {
	for range 5_000 {
		e, _, _ := newEngine()
		var closed, late atomic.Bool
		var group sync.WaitGroup
		runs := make(chan struct{}, 1)
		group.Go(func() {
			for e.Aside(func() {
				if closed.Load() {
					late.Store(true)
				}
			}) {
				select {
				case runs <- struct{}{}:
				default:
				}
			}
		})
		<-runs
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

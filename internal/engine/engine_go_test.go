package engine

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// closeTimeout is how long Close may take beside callers that never pause. Close needs
// far less, also on a busy machine.
const closeTimeout = 30 * time.Second

// Callers that keep calling a closed engine do not keep Close from returning, even on
// one CPU.
func TestCloseReturnsDuringCallerLoops(t *testing.T) {
	loops := map[string]func(e *Engine, r Request){
		"Go":      func(e *Engine, _ Request) { e.Go(func() {}) },
		"Resolve": func(e *Engine, _ Request) { _, _ = forget(e, "dead:1") },
		"Outcome": func(e *Engine, r Request) { _, _ = e.Outcome(context.Background(), r.Key) },
		"nowait": func(e *Engine, r Request) {
			r.Wait = 0
			if h, err := e.Acquire(context.Background(), r); err == nil {
				_, _ = h.Release(context.Background())
			}
		},
		"wait": func(e *Engine, r Request) {
			if h, err := e.Acquire(context.Background(), r); err == nil {
				_, _ = h.Extend(context.Background(), r.TTL)
				h.BeginRelease()
			}
		},
	}
	callers := suite.Size(4, 16)
	for _, cpus := range []int{1, 2, callers} {
		for name, call := range loops {
			t.Run(name+" on "+strconv.Itoa(cpus), func(t *testing.T) {
				if cpus != 1 {
					suite.Full(t, "repeats the test with more processors")
				}
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus))
				e, _, _ := newEngine()
				var over atomic.Bool
				var group sync.WaitGroup
				called := make(chan struct{}, callers)
				for range callers {
					group.Go(func() {
						call(e, request(WaitForever))
						called <- struct{}{}
						for !over.Load() {
							call(e, request(WaitForever))
						}
					})
				}
				<-called
				ctx, cancel := context.WithTimeout(t.Context(), closeTimeout)
				defer cancel()
				if err := e.Close(ctx); err != nil {
					t.Errorf("close: %v", err)
				}
				over.Store(true)
				group.Wait()
			})
		}
	}
}

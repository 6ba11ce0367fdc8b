package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// sharedCases let several requests hold one key at the same time.
func sharedCases() []testCase {
	return []testCase{
		{"three of nine run with three permits, and six are refused with Retry-After", everywhere, threeOfNine},
		{"nine readers run together, a writer alone, and later readers after it", everywhere, writerAmongReaders},
		{"reads share a key by their method, and a write has it alone", methods, sharedByMethod},
		{"a middleware with SharedWhen needs a wait", methods, readsNeedWait},
		{"a lock that asks for more than the outer one has is refused at once", everywhere, upgrades},
		{"a reader inside a writer is nested", everywhere, readInsideWrite},
	}
}

// reader and writer are requests for one key.
var (
	reader = request{keys: []string{theKey}, second: asReader}
	writer = request{keys: []string{theKey}}
)

// oneOf returns a lock with the header's key and a limit.
func oneOf(l limit, options ...core.Option) lock {
	return lock{keys: []key{{header: "x-key", limit: l}}, options: options}
}

// sendAll sends a request n times at once, and calls got with each answer.
func (s *routeClient) sendAll(n int, r request, got func(answer)) {
	var sent sync.WaitGroup
	for range n {
		sent.Go(func() { got(s.send(s.Context(), r)) })
	}
	sent.Wait()
}

// The three requests that run end after the six others were refused.
func threeOfNine(e *environment) {
	s := e.serve(route{
		locks: []lock{oneOf(threePermits)},
		handler: func(c call) {
			e.events.await(e.T, core.Refused, 6)
			if lease, ok := c.Lease(); !ok || !lease.Shared() {
				e.Error("the lease of a permit is not shared")
			}
			c.Reply("done")
		},
	})
	busy := e.rowOf(refused(core.ErrBusy, defaultRetryAfter))
	var ran, refusedCount atomic.Int32
	s.sendAll(9, plain, func(got answer) {
		switch {
		case got.ok && got.text == "done":
			ran.Add(1)
		case got.outcome == busy:
			refusedCount.Add(1)
		default:
			e.Errorf("%+v", got)
		}
	})
	if ran.Load() != 3 || refusedCount.Load() != 6 {
		e.Errorf("%d have run, %d were refused with a time to retry", ran.Load(), refusedCount.Load())
	}
}

// The nine readers run until the writer and a tenth reader wait.
func writerAmongReaders(e *environment) {
	var mu sync.Mutex
	var entered []string
	var reading atomic.Int32
	s := e.serve(route{
		locks: []lock{oneOf(readers, core.WithWait(patience))},
		handler: func(c call) {
			lease, _ := c.Lease()
			mu.Lock()
			entered = append(entered, fmt.Sprint(lease.Shared()))
			first := len(entered) <= 9
			mu.Unlock()
			if lease.Shared() {
				reading.Add(1)
				defer reading.Add(-1)
			} else if n := reading.Load(); n > 0 {
				e.Errorf("%d readers run beside the writer", n)
			}
			if first {
				e.events.await(e.T, core.Waiting, 2)
			}
			c.Reply("done")
		},
	})
	var sent sync.WaitGroup
	sent.Go(func() {
		s.sendAll(9, reader, func(got answer) {
			if got.text != "done" {
				e.Errorf("a reader got %+v", got)
			}
		})
	})
	e.events.await(e.T, core.Acquired, 9)
	sent.Go(func() { s.wantReply(writer, "done") })
	suite.Eventually(e.T, "the writer is in the queue", func() bool { return len(e.names(e.Context(), ":q")) == 1 })
	sent.Go(func() { s.wantReply(reader, "done") })
	sent.Wait()
	want := append(slices.Repeat([]string{"true"}, 9), "false", "true")
	if !slices.Equal(entered, want) {
		e.Errorf("readers and writers ran as %v, want %v", entered, want)
	}
}

// Each of two GETs runs until the other one runs and the POST waits.
func sharedByMethod(e *environment) {
	var entered atomic.Int32
	s := e.serve(route{
		locks: []lock{oneOf(reads, core.WithWait(patience))},
		handler: func(c call) {
			if lease, _ := c.Lease(); lease.Shared() {
				e.events.await(e.T, core.Acquired, 2)
				e.events.await(e.T, core.Waiting, 1)
				entered.Add(1)
			} else if n := entered.Load(); n != 2 {
				e.Errorf("the POST runs after %d of two GETs", n)
			}
			c.Reply("done")
		},
	})
	get := request{keys: []string{theKey}, reads: true}
	var sent sync.WaitGroup
	for range 2 {
		sent.Go(func() { s.wantReply(get, "done") })
	}
	e.events.await(e.T, core.Acquired, 2)
	s.wantReply(writer, "done")
	sent.Wait()
}

// A write that may not wait could be refused for ever.
func readsNeedWait(e *environment) {
	for _, options := range [][]core.Option{nil, {core.WithWait(0)}} {
		for _, l := range []lock{oneOf(reads, options...), {keys: []key{bySecond, {header: "x-key", limit: reads}}, options: options}} {
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "reqlock: "+e.f.name+": SharedWhen needs core.WithWait above 0") {
						e.Errorf("registered: %s", text)
					}
				}()
				e.serve(route{locks: []lock{l}})
			}()
		}
	}
}

// The inner of two locks does not wait for the outer one of its own request.
func upgrades(e *environment) {
	upgrade := e.rowOf(&core.Error{Kind: core.ErrUpgrade})
	wait := core.WithWait(patience)
	e.serve(route{locks: []lock{oneOf(shared, wait), oneOf(noLimit, wait)}}).wantRefusal(plain, upgrade)
	e.serve(route{locks: []lock{oneOf(shared, wait), oneOf(threePermits, wait)}}).wantRefusal(plain, upgrade)
	e.serve(route{group: []lock{oneOf(threePermits, wait)}, locks: []lock{oneOf(noLimit, wait)}}).wantRefusal(plain, upgrade)
	if n := e.events.count(core.Waiting); n > 0 {
		e.Errorf("%d requests have waited", n)
	}
	s := e.serve(route{
		locks: []lock{oneOf(threePermits)},
		handler: func(c call) {
			if err := e.locks.Do(c.Context(), theKey, func(context.Context) error { return nil }); !errors.Is(err, core.ErrUpgrade) {
				e.Errorf("Do alone under a permit: %v", err)
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

// A lock that asks for less is a part of the outer one.
func readInsideWrite(e *environment) {
	s := e.serve(route{
		group: []lock{oneOf(noLimit)},
		locks: []lock{oneOf(threePermits), oneOf(shared)},
		handler: func(c call) {
			if lease, _ := c.Lease(); lease.Shared() || lease.Key() != theKey {
				e.Error("the lease of a reader inside a writer is shared")
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
	e.wantLeases(theKey)
}

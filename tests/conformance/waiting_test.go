package conformance

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// waitingCases send requests for one key at the same time.
func waitingCases() []testCase {
	return []testCase{
		{"one of nine runs, and eight are refused with Retry-After", everywhere, oneOfNine},
		{"a waiter gets the lease by a hand-off", everywhere, handOver},
		{"a waiter gets the lock of another process", everywhere, waitForAnother},
	}
}

// The running request ends after the eight others were refused.
func oneOfNine(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			e.events.await(e.T, core.Refused, 8)
			c.Reply("done")
		},
	})
	busy := e.rowOf(refused(core.ErrBusy, time.Second))
	var ran, refusedCount atomic.Int32
	var sent sync.WaitGroup
	for range 9 {
		sent.Go(func() {
			switch got := s.send(e.Context(), plain); {
			case got.ok && got.text == "done":
				ran.Add(1)
			case got.outcome == busy:
				refusedCount.Add(1)
			default:
				e.Errorf("%+v", got)
			}
		})
	}
	sent.Wait()
	if ran.Load() != 1 || refusedCount.Load() != 8 {
		e.Errorf("%d have run, %d were refused with a time to retry", ran.Load(), refusedCount.Load())
	}
}

// Between two requests of one process the key stays locked in Redis.
func handOver(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}, options: []core.Option{core.WithWait(patience)}}},
		handler: func(c call) {
			e.events.await(e.T, core.Waiting, 1)
			c.Reply("done")
		},
	})
	var sent sync.WaitGroup
	for range 2 {
		sent.Go(func() { s.wantReply(plain, "done") })
	}
	sent.Wait()
	got := e.events.await(e.T, core.Acquired, 2)
	if len(got) != 2 || got[0].Handover != core.Free || got[1].Handover != core.Passed {
		e.Errorf("acquired %+v", got)
	}
}

// A request waits for a lock of another process.
func waitForAnother(e *environment) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}, options: []core.Option{core.WithWait(patience)}}},
		handler: func(c call) { c.Reply("done") },
	})
	e.take(theKey)
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		e.events.await(e.T, core.Waiting, 1)
		e.free(theKey)
	}()
	s.wantReply(plain, "done")
	<-freed
}

package failovertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// streaming is the part of clients that send request after request, over HTTP and
// gRPC, to the keys of all masters.
type streaming struct {
	*scene
	here, there               []string
	clients                   sync.WaitGroup
	stop                      chan struct{}
	refusedHere, refusedThere atomic.Int64
}

// streamWait is how long the requests wait.
const streamWait = 500 * time.Millisecond

func (st *streaming) begin() {
	st.stop = make(chan struct{})
	st.here = st.keysAt(st.master, st.name+"-stream", 2)
	for _, other := range st.others(st.master) {
		st.there = append(st.there, st.keysAt(other, st.name+"-stream", 1)...)
	}
	for n := range 2 {
		s := st.service(n, streamWait)
		for _, key := range st.here {
			st.clients.Go(func() { st.send(s, n, key, &st.refusedHere) })
		}
		for _, key := range st.there {
			st.clients.Go(func() { st.send(s, n, key, &st.refusedThere) })
		}
	}
	for _, key := range append(st.here[:2:2], st.there...) {
		await(st.t, "requests run", func() bool { return len(st.ledger.of(key)) > 10 })
	}
}

// send sends request after request.
func (st *streaming) send(s *service, n int, key string, refused *atomic.Int64) {
	for i := 0; ; i++ {
		q := question{key: key, request: fmt.Sprintf("%s-%d-%d", key, n, i)}
		a := s.ask(context.Background(), i%2 == n, q)
		if fault := a.fault(q, st.ledger.of(key)); fault != "" {
			st.t.Errorf("%s: %s", q.request, fault)
		}
		if !a.fine() {
			refused.Add(1)
		}
		select {
		case <-st.stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (st *streaming) poise() {}

func (st *streaming) replace() {}

// end looks at the runs. On the keys of other masters they have to go on.
func (st *streaming) end() {
	first := st.healed
	for _, key := range st.here {
		await(st.t, "requests run again", func() bool {
			runs := st.ledger.of(key)
			return runs[len(runs)-1].began.After(st.healed)
		})
	}
	close(st.stop)
	st.clients.Wait()
	for _, key := range st.here {
		// What was under way when the master failed may run for a moment.
		longest := gapAfter(st.ledger.of(key), st.at)
		if longest.to.Before(first) {
			first = longest.to
		}
	}
	st.figures.first = first.Sub(st.at)
	for _, key := range st.there {
		runs := st.ledger.of(key)
		gap := gapAfter(runs, st.at)
		st.figures.gap = max(st.figures.gap, gap.to.Sub(gap.from))
		n := 0
		for _, one := range runs {
			if one.began.After(st.at) && one.began.Before(first) {
				n++
			}
		}
		st.figures.there += n
	}
	if n := st.refusedThere.Load(); n > 0 {
		st.t.Errorf("%d requests were refused at other masters", n)
	}
	st.figures.note("%d refused", st.refusedHere.Load())
}

// A gap is a time without a run.
type gap struct{ from, to time.Time }

// gapAfter returns the longest gap that ends after a time.
func gapAfter(runs []run, at time.Time) (longest gap) {
	for i := 1; i < len(runs); i++ {
		one := gap{runs[i-1].began, runs[i].began}
		if one.to.After(at) && one.to.Sub(one.from) > longest.to.Sub(longest.from) {
			longest = one
		}
	}
	return longest
}

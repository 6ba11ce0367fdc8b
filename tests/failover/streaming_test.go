package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// streaming is the part of clients that send request after request, over HTTP and
// gRPC, to the keys of all masters.
type streaming struct {
	*scene
	here, there []string
	clients     sync.WaitGroup
	stop        chan struct{}
	codes       tally

	mu      sync.Mutex
	refused []time.Time // requests at other masters
}

// streamWait is how long the requests wait.
const streamWait = 500 * time.Millisecond

func (st *streaming) begin() {
	st.stop = make(chan struct{})
	st.here = st.keysAt(st.master, st.name+"-stream", 2)
	for _, other := range st.others(st.master) {
		st.there = append(st.there, st.keysAt(other, st.name+"-stream", 1)...)
	}
	st.group.Go(func() { // also where the scene is broken off
		<-st.ctx.Done()
		st.clients.Wait()
	})
	for n := range 2 {
		s := st.service(n, streamWait)
		for _, key := range st.here {
			st.clients.Go(func() { st.send(s, n, key, "here") })
		}
		for _, key := range st.there {
			st.clients.Go(func() { st.send(s, n, key, "there") })
		}
	}
	for _, key := range slices.Concat(st.here, st.there) {
		await(st.t, "requests run", func() bool { return len(st.ledger.of(key)) > 10 })
	}
}

// send sends request after request.
func (st *streaming) send(s *service, n int, key string, where string) {
	for i := 0; ; i++ {
		q := question{key: key, request: fmt.Sprintf("%s-%d-%d", key, n, i)}
		a := s.ask(context.Background(), i%2 == n, q)
		if fault := a.fault(q, st.ledger.of(key)); fault != "" {
			st.t.Errorf("%s: %s", q.request, fault)
		}
		if !a.fine() {
			st.codes.add(where + " " + a.code)
			if where == "there" && (a.code == "unavailable" || a.code == "wait_timeout") {
				st.note(time.Now())
			}
		}
		select {
		case <-st.stop:
			return
		case <-st.ctx.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// note notes when a request was refused at another master.
func (st *streaming) note(at time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.refused = append(st.refused, at)
}

func (st *streaming) poise() {}

func (st *streaming) replace() {}

// end looks at the runs. On the keys of other masters they have to go on.
func (st *streaming) end() {
	for _, key := range st.here {
		await(st.t, "requests run again", func() bool {
			runs := st.ledger.of(key)
			return runs[len(runs)-1].began.After(st.healed)
		})
	}
	close(st.stop)
	st.clients.Wait()
	var first time.Time
	for _, key := range st.here {
		runs := st.ledger.of(key)
		st.figures.hereGap = max(st.figures.hereGap, longestGap(runs, st.at))
		for _, one := range runs {
			if one.began.After(st.promotion.at) && (first.IsZero() || one.began.Before(first)) {
				first = one.began
			}
		}
	}
	st.figures.first = first.Sub(st.at)
	for _, key := range st.there {
		runs := st.ledger.of(key)
		st.figures.thereGap = max(st.figures.thereGap, longestGap(runs, st.at))
		n := 0
		for _, one := range runs {
			if one.began.After(st.at) && one.began.Before(first) {
				n++
			}
		}
		st.figures.there += n
		if st.figures.promoted > outage && n == 0 {
			st.t.Error("at another master nothing ran")
		}
	}
	st.wantServedElsewhere(first)
	st.figures.note("%s", &st.codes)
}

// wantServedElsewhere fails the test if more than a few requests were refused at
// other masters, in the whole scene, or, if that is not but a moment, until the
// first request has run at the new one. A busy machine may keep some from their
// answers.
func (st *streaming) wantServedElsewhere(first time.Time) {
	runs := 0
	for _, key := range st.there {
		runs += len(st.ledger.of(key))
	}
	refused, meanwhile := len(st.refused), 0
	for _, at := range st.refused {
		if at.After(st.at) && at.Before(first) {
			meanwhile++
		}
	}
	if refused > runs/20 {
		st.t.Errorf("%d requests were refused at other masters, and %d ran", refused, runs)
	}
	if st.figures.promoted > outage && meanwhile > st.figures.there/20 {
		st.t.Errorf("%d requests were refused at other masters until the first ran at the new one, and %d ran", meanwhile, st.figures.there)
	}
}

// outage is how long it takes at least until a master that does not answer is
// replaced.
const outage = 500 * time.Millisecond

// longestGap returns the longest time without a run of which a part is after that
// time.
func longestGap(runs []run, after time.Time) (longest time.Duration) {
	for i := 1; i < len(runs); i++ {
		if runs[i].began.After(after) {
			longest = max(longest, runs[i].began.Sub(runs[i-1].began))
		}
	}
	return longest
}

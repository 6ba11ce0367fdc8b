package failover

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// traffic is the part of clients that send requests continuously, over HTTP and gRPC, for
// keys of all masters.
type traffic struct {
	*scenario
	here, there []string // keys of the master, and of other masters
	clients     sync.WaitGroup
	stop        chan struct{}
	codes       counter

	mu      sync.Mutex
	refused []int64 // when requests for keys of other masters were refused
}

// requestWait is how long requests wait for a lock.
const requestWait = 500 * time.Millisecond

// trafficPause is how long a client waits between two requests: other packages need the processors.
const trafficPause = 20 * time.Millisecond

func (r *traffic) start() {
	r.stop = make(chan struct{})
	r.here = r.keysAt(r.master, r.name+"-traffic", 2)
	for _, other := range r.others(r.master) {
		r.there = append(r.there, r.keysAt(other, r.name+"-traffic", 1)...)
	}
	r.group.Go(func() { // also if the scenario is aborted
		<-r.ctx.Done()
		r.clients.Wait()
	})
	for n := range 2 {
		s := r.newService(n, requestWait)
		for _, key := range r.here {
			r.clients.Go(func() { r.sendRepeatedly(s, n, key, "here") })
		}
		for _, key := range r.there {
			r.clients.Go(func() { r.sendRepeatedly(s, n, key, "there") })
		}
	}
	for _, key := range slices.Concat(r.here, r.there) {
		suite.Eventually(r.t, "requests run", func() bool { return len(r.ledger.of(key)) > 10 })
	}
}

// sendRepeatedly sends requests until the end of the part.
func (r *traffic) sendRepeatedly(s *service, n int, key string, where string) {
	for i := 0; ; i++ {
		q := request{key: key, id: fmt.Sprintf("%s-%d-%d", key, n, i)}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		a := s.send(ctx, i%2 == n, q)
		cancel()
		if violation := a.violation(q, r.ledger.of(key)); violation != "" {
			r.t.Errorf("%s: %s", q.id, violation)
		}
		if !a.isOK() {
			r.codes.add(where + " " + a.code)
			if where == "there" && (a.code == "unavailable" || a.code == "wait_timeout") {
				r.recordRefusal(clock.Now())
			}
		}
		select {
		case <-r.stop:
			return
		case <-r.ctx.Done():
			return
		case <-time.After(trafficPause):
		}
	}
}

func (r *traffic) recordRefusal(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, at)
}

// finish checks the runs. On the keys of other masters they must not stop.
func (r *traffic) finish() {
	for _, key := range r.here {
		suite.Eventually(r.t, "requests run again", func() bool {
			runs := r.ledger.of(key)
			return runs[len(runs)-1].At > r.healthyAt
		})
	}
	close(r.stop)
	r.clients.Wait()
	r.firstRunAt = math.MaxInt64
	for _, key := range r.here {
		for _, one := range r.ledger.of(key) {
			if one.At > r.promotedAt {
				r.firstRunAt = min(r.firstRunAt, one.At)
			}
		}
	}
	r.wantServedElsewhere()
	r.note("%s", &r.codes)
}

// wantServedElsewhere fails the test if more than one in twenty requests was refused at
// other masters: in the whole scenario and, if the outage lasted, until the first request
// ran at the new master. A busy machine may delay one in twenty past its timeout.
func (r *traffic) wantServedElsewhere() {
	isOutage := func(at int64) bool { return at > r.failedAt && at < r.firstRunAt }
	hasOutage := r.promotedAt-r.failedAt > minOutage.Nanoseconds()
	runs, during := 0, 0
	for _, key := range r.there {
		before := during
		for _, one := range r.ledger.of(key) {
			runs++
			if isOutage(one.At) {
				during++
			}
		}
		if hasOutage && during == before {
			r.t.Errorf("no request for %s ran, at another master", key)
		}
	}
	refused := 0
	for _, at := range r.refused {
		if isOutage(at) {
			refused++
		}
	}
	if len(r.refused) > runs/20 {
		r.t.Errorf("%d requests were refused at other masters, and %d ran", len(r.refused), runs)
	}
	if hasOutage && refused > during/20 {
		r.t.Errorf("%d requests were refused at other masters until the first ran at the new one, and %d ran", refused, during)
	}
}

// minOutage is the shortest outage of a master that does not answer.
const minOutage = 500 * time.Millisecond

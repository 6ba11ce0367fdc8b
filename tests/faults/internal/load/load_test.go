// Package load tests what clients of a service get if Redis is killed while thousands of
// their requests are in flight.
//
// Two instances of a service, which are HTTP servers with their own Lockers, have 5,000
// requests in flight for 1,000 accounts. A gate holds all requests back until all have
// arrived. Then Redis is killed and restarted, twice.
//
// Each request must get an answer of the table of refusals, not before its wait is over, and
// a success only if its handler ran. No two handlers of an account overlap, and no payment
// runs twice, unless a lease was lost. At the end no lock and no queue is left.
//
// The fast tier and the race detector, which supports at most 8,128 goroutines, use 500
// requests. The package has only tests.
package load

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	fewRequests, allRequests = 500, 5000
	perAccount               = 5

	// outageTime is longer than the command timeout, so that requests with a short wait are
	// refused.
	outageTime = time.Second
)

// A run has the requests of a test.
type run struct {
	*service
	server    *redistest.Server
	instances []*instance
	requests  []*request
	answered  atomic.Int64
	done      sync.WaitGroup
	opened    time.Time // the gate
}

// newRun makes the requests, perAccount for each account: two with a long wait, two copies
// of a payment on different instances, and one with a short wait.
func newRun(t *testing.T, args ...string) *run {
	t.Helper()
	r := &run{service: newService(), server: redistest.Start(t, args...)}
	for range 2 {
		r.instances = append(r.instances, newInstance(t, r.service, r.server))
	}
	n := suite.Size(fewRequests, allRequests)
	for i := range n {
		account, group := fmt.Sprint(i%(n/perAccount)), i/(n/perAccount)
		q := &request{name: fmt.Sprintf("request-%d", i), wait: longWait}
		route := "/long-wait/" + account
		switch group {
		case 2, 3:
			q.payment = "payment-" + account
			route = "/payment/" + q.payment // an account of its own
		case 4:
			route, q.wait = "/short-wait/"+account, shortWait
		}
		q.url = r.instances[(i+group)%2].http.URL + route
		r.requests = append(r.requests, q)
	}
	return r
}

// send sends all requests, and opens the gate when they have arrived.
func (r *run) send(t *testing.T) {
	t.Helper()
	for _, q := range r.requests {
		r.done.Go(func() {
			q.err = q.send(r.instances[0].http.Client())
			q.after = time.Since(r.opened)
			r.answered.Add(1)
		})
	}
	suite.Eventually(t, "all requests arrive", func() bool { return r.inFlight.Load() == int64(len(r.requests)) })
	r.opened = time.Now()
	close(r.gate)
}

// awaitAnswers returns after some more answers.
func (r *run) awaitAnswers(t *testing.T) {
	t.Helper()
	want := r.answered.Load() + int64(len(r.requests)/10)
	suite.Eventually(t, "answers", func() bool { return r.answered.Load() >= want })
}

// outage kills Redis while requests are in flight, and restarts it.
func (r *run) outage(t *testing.T) {
	t.Helper()
	t.Logf("with %d in flight Redis is killed", r.inFlight.Load())
	if r.inFlight.Load() == 0 {
		t.Error("Redis is killed when no request is in flight")
	}
	r.server.Kill()
	time.Sleep(outageTime)
	r.server.RestartFromDisk()
}

func TestMain(m *testing.M) { suite.Main(m) }

func TestRedisIsKilledUnderLoad(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		keeps bool // Redis keeps all confirmed data
	}{
		"and keeps what it confirmed": {[]string{"--appendonly", "yes"}, true},
		"and loses everything":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, test.args...)
			r.send(t)
			r.awaitAnswers(t)
			suite.Eventually(t, "handlers sleep", func() bool { return int(r.sleeping.Load()) >= len(r.requests)/perAccount/10 })
			r.outage(t)
			close(r.restored)
			r.awaitAnswers(t)
			r.outage(t)
			r.done.Wait()
			r.check(t, test.keeps)
			for _, i := range r.instances {
				i.close(t)
			}
		})
	}
}

// check checks all answers, and that no lock and no queue is left.
func (r *run) check(t *testing.T, keeps bool) {
	t.Helper()
	ran, payments, answers, twice := map[string]*request{}, map[string]int{}, map[string]int{}, 0
	for _, q := range r.requests {
		if n := r.runs[q.name]; n > 0 {
			ran[q.name] = q
			payments[q.payment]++
			twice += n - 1
		}
	}
	for _, q := range r.requests {
		answers[fmt.Sprint(q.status, " ", q.code)]++
		if violation := q.violation(ran); violation != "" {
			t.Errorf("%s: %s: %d %s %q", q.url, violation, q.status, q.code, q.body)
		}
	}
	delete(payments, "") // not idempotent
	for _, n := range payments {
		twice += n - 1
	}
	lost := int(r.lostLeases.Load())
	t.Logf("answers %v, %d overlaps, %d ran twice, %d leases lost", answers, r.overlaps, twice, lost)
	switch {
	case keeps && r.overlaps+twice > lost:
		t.Error("more handlers overlapped, or ran twice, than leases were lost")
	case !keeps && lost == 0:
		t.Error("no lease was lost, although Redis has lost all of them")
	}
	admin := r.server.Client(t)
	suite.Eventually(t, "locks and queues are gone", func() bool {
		keys, err := admin.Keys(t.Context(), "*").Result()
		left := slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, "}:r") }) // records
		channels := admin.PubSubShardChannels(t.Context(), "*").Val()
		return err == nil && len(left)+len(channels) == 0
	})
}

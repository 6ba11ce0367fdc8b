package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	faultPeriod = 20 * time.Second
	// patient is a wait that no caller waits to its end.
	patient = 3 * time.Minute
	// shortTTL is the TTL of leases that some holders outlast.
	shortTTL = 2 * time.Second
)

// A mix is what the callers of a key want, and whether some faults outlast a lease: whether
// Redis loses the key, or a process is cut off.
type mix struct {
	limits   []store.Limit // of leases; nil makes attempts of one request
	outlasts bool
}

var mixes = []mix{
	{},
	{outlasts: true},
	{limits: []store.Limit{store.Exclusive}},
	{limits: []store.Limit{store.Exclusive}, outlasts: true},
	{limits: []store.Limit{store.Unlimited, store.Unlimited, store.Unlimited, store.Exclusive}},
	{limits: []store.Limit{3}},
	{limits: []store.Limit{3, store.Exclusive}, outlasts: true},
	{limits: []store.Limit{1, store.Unlimited}},
	{limits: []store.Limit{2, 5}}, // a deploy
	{limits: []store.Limit{2, 5, store.Unlimited, store.Exclusive}},
}

// Callers of a key run in several processes among faults of all kinds. There are never more
// holders than their limit, and none beside an exclusive one. Fencing numbers rise. Each
// holder is notified of the end of its lease. A request has one answer, and its attempts
// have the right numbers. Each caller that waits is served, and nothing is left. The name of
// a run is its seed.
func TestCallersAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range suite.Size(4, 60) * len(mixes) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newRandomRun(t, uint64(seed)).run() })
		})
	}
}

// A randomRun has callers of one key in several processes, and what they got.
type randomRun struct {
	*processes
	*testing.T
	mix
	faultsEnd time.Time // no fault after this time

	mu      sync.Mutex
	source  *rand.Rand
	holders map[*Hold]bool // that rely on their leases
	fence   int64          // the highest so far
	granted int
	lostAt  time.Time // when Redis has lost the key
	cutOff  int       // all processes except this one are cut off; -1 is none

	// Attempts:
	died      int             // since the last one that was done or began anew
	answer    string          // of the one that is done
	uncertain bool            // a commit got no reply, or leases are lost, so that nothing is certain about attempts
	running   map[*Engine]int // those that have not ended, also after the loss of their leases
}

func newRandomRun(t *testing.T, seed uint64) *randomRun {
	run := &randomRun{
		processes: newProcesses(3), T: t, mix: mixes[seed%uint64(len(mixes))], faultsEnd: time.Now().Add(faultPeriod),
		source: rand.New(rand.NewPCG(seed, 0)), holders: make(map[*Hold]bool), cutOff: -1, running: make(map[*Engine]int),
	}
	if run.outlasts { // its holders hold for longer
		run.faultsEnd = time.Now().Add(3 * faultPeriod)
		run.uncertain = run.limits == nil
	}
	run.injectFaults()
	return run
}

func (run *randomRun) note(f func()) {
	run.mu.Lock()
	defer run.mu.Unlock()
	f()
}

// run makes the calls, and then waits until all that was given up is released.
func (run *randomRun) run() {
	var group sync.WaitGroup
	for range 80 {
		group.Go(run.call)
	}
	for i := range run.engines {
		group.Go(func() { run.forge(i) })
	}
	group.Go(run.loseHints)
	if run.outlasts {
		group.Go(run.loseLeases)
	}
	group.Wait()
	if run.granted == 0 {
		run.Error("no caller was granted a lease")
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	if state := run.server.record("k").state; state == 'R' && run.died == 0 && !run.uncertain {
		run.Errorf("an attempt is left: %+v", run.server.record("k"))
	}
	run.checkIdle(run.T)
}

// request returns the request of a caller.
func (run *randomRun) request() Request {
	r := request(patient)
	r.Fencing = run.choose(2) == 0
	switch {
	case run.limits != nil:
		r.Limit = run.limits[run.choose(len(run.limits))]
	case run.choose(6) > 0:
		r.Attempt = attempt("f", patient).Attempt
		r.Attempt.Rerun = run.choose(2) == 0 && (!run.outlasts || run.choose(4) == 0)
		r.Attempt.Keep = time.Duration(1+run.choose(2)) * time.Hour
	}
	switch run.choose(8) {
	case 0:
		r.Wait = 0
	case 1:
		r.TTL = 20 * time.Second
	case 2:
		r.Wait = run.upTo(5*time.Second) + time.Millisecond
	case 3, 4:
		if run.limits != nil {
			r.TTL = shortTTL
		}
	}
	if run.outlasts {
		r.TTL = shortTTL
	}
	if r.TTL == shortTTL {
		r.Renew = run.choose(3) > 0
	}
	return r
}

// call is a caller: it comes at some time, and may leave while it waits.
func (run *randomRun) call() {
	time.Sleep(run.upTo(15 * time.Second))
	ctx, cancel := context.WithCancel(run.Context())
	defer cancel()
	if run.choose(3) == 0 {
		time.AfterFunc(run.upTo(3*time.Second), cancel)
	}
	r := run.request()
	h, err := run.engines[run.choose(len(run.engines))].Acquire(ctx, r)
	if err == nil {
		run.hold(h)
		return
	}
	refusal, _ := err.(*Refusal) //nolint:errorlint // Acquire promises the type itself
	run.note(func() {
		switch {
		case refusal.Reason == TimedOut && r.Wait == patient && refusal.Ended == nil:
			run.Errorf("not served within %v", patient)
		case run.uncertain:
		case refusal.Reason == Died && run.died == 0, refusal.Reason == Done && string(refusal.Record) != run.answer:
			run.Errorf("refused with %v, %q after %d attempts that died and the answer %q", refusal.Reason, refusal.Record, run.died, run.answer)
		}
	})
}

// hold works under the lease, and releases it.
func (run *randomRun) hold(h *Hold) {
	run.note(func() { run.enter(h) })
	h.checkCount(run.T)
	leave := func() { run.note(func() { delete(run.holders, h) }) }
	defer context.AfterFunc(h.Context(), leave)()
	time.Sleep(run.upTo(500 * time.Millisecond))
	if run.choose(8) == 0 {
		_, err := h.Extend(context.Background(), h.request.TTL)
		if left := time.Until(h.ValidUntil()); err == nil && h.Alive() && left < h.request.TTL*98/100-2*bound {
			run.Errorf("extended, and valid for %v", left)
		}
	}
	if h.request.TTL == shortTTL && run.choose(2) == 0 {
		time.Sleep(run.upTo(2 * shortTTL))
	}
	if h.Context().Err() == nil && time.Now().After(h.ValidUntil()) {
		run.Errorf("the lease has ended %v ago, and its context has not", time.Since(h.ValidUntil()))
	}
	leave()
	if h.request.Attempt != nil {
		run.end(h)
	} else if loss, _ := h.Release(context.Background()); loss != NotLost && h.request.Renew && !run.outlasts {
		run.Errorf("loss %v", loss)
	}
}

// end ends an attempt, mostly as if it had not begun.
func (run *randomRun) end(h *Hold) {
	ending := EndAbort
	run.note(func() {
		switch {
		case run.source.IntN(40) == 0, run.outlasts && run.source.IntN(4) == 0:
			ending, run.answer = EndCommit, string(answerOf(h))
		case run.source.IntN(15) == 0:
			ending = EndUnknown
			run.died++
		}
		run.running[h.engine]--
	})
	loss, err := h.End(context.Background(), ending, answerOf(h))
	run.note(func() {
		run.uncertain = run.uncertain || ending == EndCommit && err != nil
		if loss != NotLost && !run.outlasts {
			run.Errorf("%v of attempt %d: loss %v", ending, h.Number(), loss)
		}
	})
}

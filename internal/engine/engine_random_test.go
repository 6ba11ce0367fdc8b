package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/reqlock/reqlock/internal/store"
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
// have the right numbers. Each caller that waits is served, and nothing is left.
func TestCallersAtRandom(t *testing.T) {
	t.Parallel()
	for i, m := range mixes {
		t.Run(fmt.Sprintf("mix %d", i), func(t *testing.T) {
			t.Parallel()
			var first sync.Once
			rapid.Check(t, func(r *rapid.T) {
				var found failures
				p := m.plan(r)
				synctest.Test(t, func(t *testing.T) {
					found.TB = t
					newRandomRun(&found, p).run()
				})
				if len(found.texts) > 0 {
					first.Do(func() { t.Logf("first with %d callers: %s", len(p.callers), found.texts) })
					r.Log(found.texts)
					r.Fatal(found.formats[0]) // without values, since rapid keeps to one text
				}
			})
		})
	}
}

// A randomRun has callers of one key in several processes, and what they got.
type randomRun struct {
	*processes
	testing.TB
	plan
	faultsEnd time.Time // no fault after this time

	mu      sync.Mutex
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

func newRandomRun(t testing.TB, p plan) *randomRun {
	run := &randomRun{
		processes: newProcesses(3), TB: t, plan: p, faultsEnd: time.Now().Add(faultPeriod),
		holders: make(map[*Hold]bool), cutOff: -1, running: make(map[*Engine]int),
	}
	if run.outlasts { // its holders hold for longer
		run.faultsEnd = time.Now().Add(3 * faultPeriod)
		run.uncertain = run.limits == nil
	}
	if run.injects {
		run.injectFaults()
	}
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
	for _, i := range run.callers {
		group.Go(func() { run.call(run.dice(i)) })
	}
	if run.forges {
		for i := range run.engines {
			group.Go(func() { run.forge(i) })
		}
	}
	if run.loses {
		group.Go(run.loseHints)
	}
	if run.outlasts {
		group.Go(run.loseLeases)
	}
	group.Wait()
	if run.granted == 0 && len(run.callers) > candidates/4 {
		run.Error("no caller was granted a lease")
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	if state := run.server.record("k").state; state == 'R' && run.died == 0 && !run.uncertain {
		run.Errorf("an attempt is left: %+v", run.server.record("k"))
	}
	run.checkIdle(run.TB)
}

// request returns the request of a caller.
func (run *randomRun) request(d *dice) Request {
	r := request(patient)
	r.Fencing = d.choose(2) == 0
	switch {
	case run.limits != nil:
		r.Limit = run.limits[d.choose(len(run.limits))]
	case d.choose(6) > 0:
		r.Attempt = attempt("f", patient).Attempt
		r.Attempt.Rerun = d.choose(2) == 0 && (!run.outlasts || d.choose(4) == 0)
		r.Attempt.Keep = time.Duration(1+d.choose(2)) * time.Hour
	}
	switch d.choose(8) {
	case 0:
		r.Wait = 0
	case 1:
		r.TTL = 20 * time.Second
	case 2:
		r.Wait = d.upTo(5*time.Second) + time.Millisecond
	case 3, 4:
		if run.limits != nil {
			r.TTL = shortTTL
		}
	}
	if run.outlasts {
		r.TTL = shortTTL
	}
	if r.TTL == shortTTL {
		r.Renew = d.choose(3) > 0
	}
	return r
}

// call is a caller: it comes at some time, and may leave while it waits.
func (run *randomRun) call(d *dice) {
	time.Sleep(d.upTo(15 * time.Second))
	ctx, cancel := context.WithCancel(run.Context())
	defer cancel()
	if d.choose(3) == 0 {
		time.AfterFunc(d.upTo(3*time.Second), cancel)
	}
	r := run.request(d)
	h, err := run.engines[d.choose(len(run.engines))].Acquire(ctx, r)
	if err == nil {
		run.hold(d, h)
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
func (run *randomRun) hold(d *dice, h *Hold) {
	run.note(func() { run.enter(h) })
	h.checkCount(run.TB)
	leave := func() { run.note(func() { delete(run.holders, h) }) }
	defer context.AfterFunc(h.Context(), leave)()
	time.Sleep(d.upTo(500 * time.Millisecond))
	if d.choose(8) == 0 {
		_, err := h.Extend(context.Background(), h.request.TTL)
		if left := time.Until(h.ValidUntil()); err == nil && h.Alive() && left < h.request.TTL*98/100-2*bound {
			run.Errorf("extended, and valid for %v", left)
		}
	}
	if h.request.TTL == shortTTL && d.choose(2) == 0 {
		time.Sleep(d.upTo(2 * shortTTL))
	}
	if h.Context().Err() == nil && time.Now().After(h.ValidUntil()) {
		run.Errorf("the lease has ended %v ago, and its context has not", time.Since(h.ValidUntil()))
	}
	leave()
	if h.request.Attempt != nil {
		run.end(d, h)
	} else if loss, _ := h.Release(context.Background()); loss != NotLost && h.request.Renew && !run.outlasts {
		run.Errorf("loss %v", loss)
	}
}

// end ends an attempt, mostly as if it had not begun.
func (run *randomRun) end(d *dice, h *Hold) {
	ending := EndAbort
	run.note(func() {
		switch {
		case d.choose(40) == 0, run.outlasts && d.choose(4) == 0:
			ending, run.answer = EndCommit, string(answerOf(h))
		case d.choose(15) == 0:
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

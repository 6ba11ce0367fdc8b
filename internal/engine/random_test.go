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
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	fewRuns, allRuns = 12, 400 // of the fast tier, and of the full tier; TestLimitsAtRandom derives its own
	faultPeriod      = 20 * time.Second
)

// Callers of all kinds run among faults of all kinds, except faults that outlast a
// lease. No process dies, so no caller is refused because an attempt died, and no
// attempt is the second one. There is one answer, and nothing is left. The name of a
// run is its seed.
func TestAttemptsAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range suite.Size(fewRuns, allRuns) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newRandomRun(uint64(seed)).run(t) })
		})
	}
}

// A randomRun has callers of one key in several processes, and their results.
type randomRun struct {
	*processes
	faultsEnd time.Time // no fault after this time

	mu        sync.Mutex
	source    *rand.Rand
	running   int
	uncertain bool // a commit got no reply, so its attempt may look like one that died
	answers   map[string]int
	reasons   map[Reason]int
}

func newRandomRun(seed uint64) *randomRun {
	run := &randomRun{
		processes: newProcesses(3), faultsEnd: time.Now().Add(faultPeriod),
		source:  rand.New(rand.NewPCG(seed, 0)),
		answers: map[string]int{}, reasons: map[Reason]int{},
	}
	for _, s := range run.stores {
		s.before.set(func(transition string, _ storetest.AnyRequest) error { return run.fault(transition, 15) })
		s.after.set(func(transition string, r storetest.AnyRequest) error {
			err := run.fault(transition, 25)
			if err != nil && (transition == "begin" || transition == "take") && run.choose(2) == 0 {
				time.AfterFunc(run.upTo(100*time.Millisecond), func() { s.lateGrant(r.Key, r.Token) }) // its late reply
			}
			return err
		})
	}
	return run
}

// choose returns a number below n.
func (run *randomRun) choose(n int) int {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.source.IntN(n)
}

func (run *randomRun) upTo(d time.Duration) time.Duration {
	return time.Duration(run.choose(int(d/time.Millisecond))) * time.Millisecond
}

func (run *randomRun) note(f func()) {
	run.mu.Lock()
	defer run.mu.Unlock()
	f()
}

// fault waits for a random time, and fails in this percentage of calls. Renewals do not
// fail, because the test excludes lost leases.
func (run *randomRun) fault(transition string, rate int) error {
	if time.Now().After(run.faultsEnd) {
		return nil
	}
	if run.choose(3) == 0 {
		time.Sleep(run.upTo(240 * time.Millisecond))
	}
	if transition != "renew" && run.choose(100) < rate {
		return errNoCommitReply
	}
	return nil
}

// forge publishes hints with tokens of a process, as another client of the server may:
// old tokens, the token of its lease, and tokens that it issues next.
func (run *randomRun) forge(process int) {
	e := run.engines[process]
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(run.upTo(50 * time.Millisecond))
		next := int(e.tokens.Load()) + 1
		limit := []store.Limit{store.Exclusive, store.Unlimited, 3}[run.choose(3)]
		token := store.NewToken(e.process, limit, uint64(1+run.choose(next+2)))
		for range 1 + run.choose(3) {
			run.stores[process].hint("k", token)
		}
	}
}

// request returns the request of a caller: mostly the attempt that all others have.
func (run *randomRun) request() Request {
	r := attempt("f", WaitForever)
	r.Attempt.Rerun = run.choose(2) == 0
	switch run.choose(6) {
	case 0:
		r.Attempt = nil
	case 1:
		r.Attempt.Keep = 2 * time.Hour
	case 2:
		r.Wait = 0
	case 3:
		r.TTL = 20 * time.Second
	}
	return r
}

func (run *randomRun) run(t *testing.T) {
	var group sync.WaitGroup
	for range 60 {
		group.Go(func() {
			time.Sleep(run.upTo(15 * time.Second))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if run.choose(2) == 0 {
				time.AfterFunc(run.upTo(3*time.Second), cancel)
			}
			r := run.request()
			h, err := run.engines[run.choose(len(run.engines))].Acquire(ctx, r)
			if err == nil {
				run.hold(t, h)
				return
			}
			refusal, _ := err.(*Refusal) //nolint:errorlint // Acquire promises the type itself
			run.note(func() {
				run.reasons[refusal.Reason]++
				if refusal.Reason == Done {
					run.answers[string(refusal.Record)]++
				}
			})
		})
	}
	for i := range run.engines {
		group.Go(func() { run.forge(i) })
	}
	group.Wait()
	time.Sleep(3 * time.Minute) // by then all attempts that were given up are aborted
	synctest.Wait()
	if record := run.server.record("k"); !run.uncertain && (run.reasons[Interrupted] > 0 || record.state == 'R') {
		t.Errorf("refused %v, the record is %c of %s", run.reasons, record.state, record.token)
	}
	if len(run.answers) > 1 {
		t.Errorf("answers %v", run.answers)
	}
	run.checkIdle(t)
}

// hold holds the lease for a while, and mostly aborts.
func (run *randomRun) hold(t *testing.T, h *Hold) {
	run.note(func() {
		if run.running++; run.running > 1 {
			t.Error("two run")
		}
	})
	time.Sleep(run.upTo(500 * time.Millisecond))
	run.note(func() { run.running-- })
	if h.request.Attempt == nil {
		_, _ = h.Release(context.Background())
		return
	}
	ending := Abort
	if run.choose(40) == 0 {
		ending = Commit
	}
	loss, err := h.End(context.Background(), ending, answerOf(h))
	run.note(func() {
		run.uncertain = run.uncertain || ending == Commit && err != nil
		if loss != NotLost || h.Number() != 1 && !run.uncertain {
			t.Errorf("%v of attempt %d: loss %v", ending, h.Number(), loss)
		}
	})
}

package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A plan says who calls in a run, and what fails. Rapid shrinks a plan that fails: it leaves callers and faults out. All
// else follows from the seed, except the order of what happens at the same time, and what the engine itself chooses at
// random. So a run that fails may not fail again.
type plan struct {
	mix
	seed    uint64
	callers []int // their numbers
	injects bool  // commands that are slow or lost
	forges  bool  // hints
	loses   bool  // hints
}

// candidates is how many callers may come. Half of them do.
const candidates = 160

var (
	comers = rapid.Custom(func(t *rapid.T) (all []int) {
		for i := range candidates {
			if rapid.Bool().Draw(t, "comes") {
				all = append(all, i)
			}
		}
		return all
	})
	mostly = rapid.Custom(func(t *rapid.T) bool { return slices.Contains(rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, ""), true) })
)

func (m mix) plan(t *rapid.T) plan {
	return plan{
		mix: m, seed: rapid.Uint64().Draw(t, "seed"), callers: comers.Draw(t, "callers"),
		injects: mostly.Draw(t, "commands fail"), forges: mostly.Draw(t, "hints are forged"), loses: mostly.Draw(t, "hints are lost"),
	}
}

// failures keeps the errors of a run, so that only rapid fails the test.
type failures struct {
	testing.TB
	mu             sync.Mutex
	formats, texts []string
}

func (f *failures) Error(args ...any) { f.add(fmt.Sprint(args...), fmt.Sprint(args...)) }

func (f *failures) Errorf(format string, args ...any) { f.add(format, fmt.Sprintf(format, args...)) }

func (f *failures) add(format, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.formats, f.texts = append(f.formats, format), append(f.texts, text)
}

// dice are the choices of one caller or fault. They are safe for concurrent use.
type dice struct {
	mu     sync.Mutex
	source *rand.Rand
}

func (run *randomRun) dice(of int) *dice {
	return &dice{source: rand.New(rand.NewPCG(run.seed, uint64(of)))}
}

// choose returns a number below n.
func (d *dice) choose(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.IntN(n)
}

func (d *dice) upTo(longest time.Duration) time.Duration {
	return time.Duration(d.choose(int(longest/time.Millisecond))) * time.Millisecond
}

// injectFaults makes commands slow, and lets them and their replies get lost.
func (run *randomRun) injectFaults() {
	for i, s := range run.stores {
		d := run.dice(-1 - i)
		s.before.set(func(transition string, _ storetest.AnyRequest) error { return run.fault(d, i, transition, 15) })
		s.after.set(func(transition string, r storetest.AnyRequest) error {
			err := run.fault(d, i, transition, 25)
			if err != nil && (transition == "begin" || transition == "take") && d.choose(2) == 0 {
				time.AfterFunc(d.upTo(100*time.Millisecond), func() { s.lateGrant(r.Key, r.Token) }) // its late reply
			}
			return err
		})
	}
}

// fault waits for a random time, and fails in this percentage of calls. Renewals fail only
// if a process is cut off.
func (run *randomRun) fault(d *dice, process int, transition string, rate int) error {
	if time.Now().After(run.faultsEnd) {
		return nil
	}
	if d.choose(3) == 0 {
		time.Sleep(d.upTo(240 * time.Millisecond))
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.cutOff >= 0 && run.cutOff != process || transition != "renew" && d.choose(100) < rate {
		return errNoCommitReply
	}
	return nil
}

// forge publishes hints with tokens of a process, as another client of the server may:
// old tokens, the token of its lease, and tokens that it issues next.
func (run *randomRun) forge(process int) {
	e, d := run.engines[process], run.dice(-10-process)
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(d.upTo(50 * time.Millisecond))
		next := int(e.tokens.Load()) + 1
		limit := []store.Limit{store.Exclusive, store.Unlimited, 3}[d.choose(3)]
		token := store.NewToken(e.process, limit, uint64(1+d.choose(next+2)))
		for range 1 + d.choose(3) {
			run.stores[process].hint("k", token)
		}
	}
}

// loseHints loses hints, and subscriptions, again and again.
func (run *randomRun) loseHints() {
	d := run.dice(-20)
	loses := func(lost bool) {
		run.server.mu.Lock()
		defer run.server.mu.Unlock()
		run.server.hintsLost = lost
	}
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(d.upTo(time.Second))
		loses(d.choose(2) == 0)
		s := run.stores[d.choose(len(run.stores))]
		s.loseSubscription(true)
		time.Sleep(d.upTo(100 * time.Millisecond))
		s.loseSubscription(false)
		s.hint("k", "")
	}
	loses(false)
}

// loseLeases makes Redis lose the key, or cuts all processes except one off, for longer than
// some leases.
func (run *randomRun) loseLeases() {
	d := run.dice(-30)
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(d.upTo(shortTTL))
		if process := d.choose(1 + len(run.stores)); process < len(run.stores) {
			run.note(func() { run.cutOff = process })
			time.Sleep(d.upTo(3 * shortTTL))
			run.note(func() { run.cutOff = -1 })
			continue
		}
		run.server.mu.Lock()
		delete(run.server.keys, "k")
		delete(run.server.phases, "k")
		delete(run.server.records, "k")
		if d.choose(2) == 0 {
			delete(run.server.queues, "k")
		}
		run.note(func() {
			run.lostAt = time.Now()
			clear(run.holders)
		})
		run.server.mu.Unlock()
	}
}

// enter checks a grant. A lease that Redis had granted before it lost the key is not counted.
func (run *randomRun) enter(h *Hold) {
	run.granted++
	if h.request.Attempt != nil {
		if run.running[h.engine] > 0 && !h.request.Attempt.Rerun {
			run.Error("an attempt begins beside another one of its process")
		}
		run.running[h.engine]++
	}
	if h.request.Attempt != nil && !run.uncertain {
		if h.Number() != run.died+1 || run.answer != "" || run.died > 0 && !h.request.Attempt.Rerun {
			run.Errorf("attempt %d after %d that died, and the answer %q", h.Number(), run.died, run.answer)
		}
	}
	if h.grantedAt().Before(run.lostAt.Add(bound)) || h.Context().Err() != nil {
		return
	}
	run.holders[h] = true
	places, of := 0, make(map[store.Limit]int)
	for other := range run.holders {
		limit := other.request.Limit
		of[limit]++
		places = max(places, placesOf(other.Token()))
	}
	if len(run.holders) > places || of[h.request.Limit] > placesOf(h.Token()) || of[store.Exclusive] > 0 && len(run.holders) > 1 {
		run.Errorf("holders by their limits: %v", of)
	}
	switch fence := h.Fence(); {
	case !h.request.Fencing:
	case fence < run.fence, fence == run.fence && !h.request.Limit.IsShared():
		run.Errorf("fence %d of limit %d after %d", fence, h.request.Limit, run.fence)
	default:
		run.fence = fence
	}
}

// grantedAt returns when the lease of the hold was granted.
func (h *Hold) grantedAt() time.Time {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.lease.begun
}

// checkCount fails the test unless the list of the hold counts its leases with a holder.
func (h *Hold) checkCount(t testing.TB) {
	t.Helper()
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	l, n := h.lease.queue.waitlist, 0
	for _, q := range h.lease.queue.root.allQueues() {
		if q.waitlist == l && q.hasHolder() {
			n++
		}
	}
	if l.holders != n {
		t.Errorf("limit %d: %d leases have a holder, counted %d", l.limit, n, l.holders)
	}
}

package engine

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

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

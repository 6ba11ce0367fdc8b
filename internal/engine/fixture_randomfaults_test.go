package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// choose returns a number below n.
func (run *randomRun) choose(n int) int {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.source.IntN(n)
}

func (run *randomRun) upTo(d time.Duration) time.Duration {
	return time.Duration(run.choose(int(d/time.Millisecond))) * time.Millisecond
}

// injectFaults makes commands slow, and lets them and their replies get lost.
func (run *randomRun) injectFaults() {
	for i, s := range run.stores {
		s.before.set(func(transition string, _ storetest.AnyRequest) error { return run.fault(i, transition, 15) })
		s.after.set(func(transition string, r storetest.AnyRequest) error {
			err := run.fault(i, transition, 25)
			if err != nil && (transition == "begin" || transition == "take") && run.choose(2) == 0 {
				time.AfterFunc(run.upTo(100*time.Millisecond), func() { s.lateGrant(r.Key, r.Token) }) // its late reply
			}
			return err
		})
	}
}

// fault waits for a random time, and fails in this percentage of calls. Renewals fail only
// if a process is cut off.
func (run *randomRun) fault(process int, transition string, rate int) error {
	if time.Now().After(run.faultsEnd) {
		return nil
	}
	if run.choose(3) == 0 {
		time.Sleep(run.upTo(240 * time.Millisecond))
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.cutOff >= 0 && run.cutOff != process || transition != "renew" && run.source.IntN(100) < rate {
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

// loseHints loses hints, and subscriptions, again and again.
func (run *randomRun) loseHints() {
	loses := func(lost bool) {
		run.server.mu.Lock()
		defer run.server.mu.Unlock()
		run.server.hintsLost = lost
	}
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(run.upTo(time.Second))
		loses(run.choose(2) == 0)
		s := run.stores[run.choose(len(run.stores))]
		s.loseSubscription(true)
		time.Sleep(run.upTo(100 * time.Millisecond))
		s.loseSubscription(false)
		s.hint("k", "")
	}
	loses(false)
}

// loseLeases makes Redis lose the key, or cuts all processes except one off, for longer than
// some leases.
func (run *randomRun) loseLeases() {
	for time.Now().Before(run.faultsEnd) {
		time.Sleep(run.upTo(shortTTL))
		if process := run.choose(1 + len(run.stores)); process < len(run.stores) {
			run.note(func() { run.cutOff = process })
			time.Sleep(run.upTo(3 * shortTTL))
			run.note(func() { run.cutOff = -1 })
			continue
		}
		run.server.mu.Lock()
		delete(run.server.keys, "k")
		delete(run.server.phases, "k")
		delete(run.server.records, "k")
		if run.choose(2) == 0 {
			delete(run.server.queues, "k")
		}
		run.note(func() {
			run.lostAt = time.Now()
			clear(run.holders)
		})
		run.server.mu.Unlock()
	}
}

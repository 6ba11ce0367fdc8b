package crash

import (
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An outage is a failure while a handler runs, and its expected consequences. No process
// is killed.
type outage struct {
	policy string
	// breaks runs after the handler's effect, and mends when its client has an answer.
	breaks, mends func(c *crashCase)
	// withWaiter means that a duplicate waits in the same process and gets the outcome.
	// Otherwise a later duplicate in the other process gets it.
	withWaiter   bool
	outcome      string
	firstDiffers bool     // no later client gets the answer of the first client
	reports      []string // what the process reports of its attempt
	effects      int
	// violations are those of the observation that cannot be avoided.
	violations string
}

func nothing(*crashCase) {}

// newOutages returns outages, each for one use: some have channels to close. The victim's
// lease ends soon.
func newOutages() map[string]outage {
	away := func(c *crashCase) { c.victim.proxy.Refuse(true) }
	back := func(c *crashCase) {
		c.victim.proxy.Refuse(false)
		c.awaitCommit()
	}
	return map[string]outage{
		"Redis is away": {
			reject, away, back, false, "replayed", false, []string{unstored}, 1, "",
		},
		"Redis is away, and returns while a duplicate waits": {
			reject, away, back, true, "replayed", false, []string{unstored}, 1, "",
		},
		"Redis is away, and the request runs again meanwhile": {
			rerun, away, func(c *crashCase) {
				c.wantNext("fine")
				c.victim.proxy.Refuse(false)
				suite.Eventually(c.t, "the commit is refused", func() bool { return c.hasReported(c.victim, refused) })
			}, false, "replayed", true, []string{unstored, refused}, 2, "",
		},
		"Redis is away, and a waiting duplicate may run": {
			rerun, away, back, true, "replayed", false, []string{unstored}, 1, "",
		},
		"all traffic is dropped": {
			reject, func(c *crashCase) { c.victim.proxy.Partition() }, func(c *crashCase) {
				c.victim.proxy.HealDropped()
				c.awaitCommit()
			},
			false, "replayed", false,
			[]string{unstored},
			1, "",
		},
		"the commit arrives after the process gave up": {
			reject, func(c *crashCase) { c.victim.proxy.Partition() }, func(c *crashCase) {
				c.victim.proxy.Heal()
				c.awaitCommit()
			},
			false, "replayed", false,
			[]string{unstored},
			1, "",
		},
		"the commit is lost twice": {
			reject, func(c *crashCase) {
				for range 2 { // each costs a time limit, and a commit is retried for two seconds in all
					c.held = append(c.held, atLostCommand(c.victim.proxy, isCommit, func() {}))
				}
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the reply to the commit is lost three times": {
			reject, func(c *crashCase) {
				for range 3 {
					atLostReply(c.victim.proxy, isCommit, func() {})
				}
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the key is deleted": {
			reject, func(c *crashCase) {
				redistest.Lose(c.t, c.admin, "the lease is lost", c.victimHasLost, c.lock(c.first))
			}, nothing, false, "replayed", false, []string{lost}, 1, "",
		},
		"traffic is delayed until another attempt is done": {
			rerun, func(c *crashCase) {
				c.victim.proxy.Partition()
				c.wantNext("fine")
				c.victim.proxy.Heal()
			}, nothing, false, "replayed", true, []string{lost, refused}, 2, "",
		},
		"all data is lost": {
			reject, func(c *crashCase) {
				redistest.Lose(c.t, c.admin, "the lease is lost", c.victimHasLost, c.allKeys()...)
			}, nothing, false, "replayed", false, []string{lost, restored}, 1, "",
		},
	}
}

// newDeletions returns outages that delete keys once. The victim has time for each command:
// a command that is sent twice would restore a key.
func newDeletions() map[string]outage {
	return map[string]outage{
		"the key is deleted, and a duplicate may not run": {
			reject, func(c *crashCase) {
				c.admin.Del(c.t.Context(), c.lock(c.first))
				c.wantNext("outcome_unknown")
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the key is deleted, and another attempt is done": {
			rerun, func(c *crashCase) {
				c.admin.Del(c.t.Context(), c.lock(c.first))
				c.wantNext("fine")
			}, nothing, false, "replayed", true, []string{refused}, 2, "",
		},
		"the record is deleted": {
			reject, func(c *crashCase) { c.admin.Del(c.t.Context(), "{"+c.lock(c.first)+"}:r") }, nothing,
			false, "replayed", false,
			[]string{restored},
			1, "",
		},
		"all data is lost, and a duplicate runs": {
			reject, func(c *crashCase) {
				c.deleteKeys()
				c.wantNext("fine")
			}, nothing, false, "replayed", true, []string{refused}, 2, "attempt 1, not 2; 2 charges, freed 0 times",
		},
		"all data is lost, and the record once more while a duplicate runs": overtaken(),
	}
}

// overtaken loses the record of the running attempt, and then that of the next attempt,
// which ends after the first one. The first attempt must not restore the record.
func overtaken() outage {
	runs, mayEnd := make(chan struct{}), make(chan struct{})
	return outage{
		policy: reject,
		breaks: func(c *crashCase) {
			c.ledger.hook(c.first.key, func(v ledgerCall) bool {
				if v.Charge {
					close(runs)
					<-mayEnd
				}
				return true
			})
			c.deleteKeys()
			c.clients.Go(func() { c.wantNext("fine") })
			suite.AwaitClosed(c.t, "the handler runs", runs)
			c.admin.Del(c.t.Context(), "{"+c.lock(c.first)+"}:r")
		},
		mends: func(c *crashCase) {
			close(mayEnd)
			c.clients.Wait()
		},
		outcome: "replayed", firstDiffers: true, reports: []string{refused}, effects: 2,
		violations: "attempt 1, not 2; 2 charges, freed 0 times",
	}
}

func (c *crashCase) awaitCommit() {
	c.t.Helper()
	suite.Eventually(c.t, "the commit arrives", func() bool {
		return isCommitted(c.monitor.of(c.lock(c.first)))
	})
}

func (c *crashCase) deleteKeys() {
	c.admin.Del(c.t.Context(), c.allKeys()...)
}

func (c *crashCase) allKeys() []string {
	name := c.lock(c.first)
	return []string{name, "{" + name + "}:q", "{" + name + "}:r"}
}

func (c *crashCase) victimHasLost() bool { return c.hasReported(c.victim, lost) }

// hasReported reports whether a process has reported an event of the request's key.
func (c *crashCase) hasReported(p *process, event string) bool {
	return p.events(event, c.framework.endpoint(c.first.policy, c.first.key)) > 0
}

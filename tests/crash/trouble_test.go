package crash

// A trouble is something that breaks while a handler runs, and what has to come of
// it. No process crashes.
type trouble struct {
	policy string
	// breaks runs when the handler has had its effect, and mends when its client
	// has an answer.
	breaks, mends func(c *crash)
	// waited is true if a duplicate waits in the same process; then it gets
	// outcome, and else one that comes afterwards does, in the other process.
	waited  bool
	outcome string
	own     bool     // the first client alone has its answer
	told    []string // what the process tells of its attempt
	effects int
	// meant are the faults of the story that cannot be avoided.
	meant string
}

func nothing(*crash) {}

// newTroubles returns all of them. Each is played once: some have channels to close.
func newTroubles() map[string]trouble {
	return map[string]trouble{
		"Redis is gone": {
			reject, func(c *crash) { c.victim.proxy.Refuse(true) }, func(c *crash) { c.victim.proxy.Refuse(false) },
			false, "outcome_unknown", true,
			[]string{unstored},
			1, "",
		},
		"Redis is gone, and comes back for a duplicate that waits": {
			reject, func(c *crash) { c.victim.proxy.Refuse(true) }, func(c *crash) { c.victim.proxy.Refuse(false) },
			true, "outcome_unknown", true,
			[]string{unstored},
			1, "",
		},
		"Redis is gone, and the request may run again": {
			rerun, func(c *crash) { c.victim.proxy.Refuse(true) }, func(c *crash) { c.victim.proxy.Refuse(false) },
			false, "fine", true,
			[]string{unstored},
			2, "",
		},
		"Redis is gone, and a duplicate that waits may run": {
			rerun, func(c *crash) { c.victim.proxy.Refuse(true) }, func(c *crash) { c.victim.proxy.Refuse(false) },
			true, "fine", true,
			[]string{unstored},
			2, "",
		},
		"nothing gets through, nor later": {
			reject, func(c *crash) { c.victim.proxy.Partition() }, func(c *crash) { c.victim.proxy.HealDropped() },
			false, "outcome_unknown", true,
			[]string{unstored},
			1, "",
		},
		"the commit arrives after it was given up": {
			reject, func(c *crash) { c.victim.proxy.Partition() }, func(c *crash) {
				c.victim.proxy.Heal()
				await(c.t, "the commit arrives", func() bool {
					writes := c.witness.of(c.lock(c.first))
					return writes[len(writes)-1].State == "D"
				})
			},
			false, "replayed", false,
			[]string{unstored},
			1, "",
		},
		"the commit is lost, again and again": {
			reject, func(c *crash) {
				for range 2 { // each costs a time limit, and a commit is tried for two seconds in all
					whenLost(c.victim.proxy, isCommit, func() {})
				}
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the reply to the commit is lost, again and again": {
			reject, func(c *crash) {
				for range 3 {
					whenUnheard(c.victim.proxy, isCommit, func() {})
				}
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the key is deleted": {
			reject, func(c *crash) {
				c.admin.Del(c.t.Context(), c.lock(c.first))
				await(c.t, "the lease is lost", func() bool { return c.toldBy(c.victim, lost) })
			}, nothing, false, "replayed", false, []string{lost}, 1, "",
		},
		"the key is deleted, and a duplicate may not run": {
			reject, func(c *crash) {
				c.admin.Del(c.t.Context(), c.lock(c.first))
				c.wantNext("outcome_unknown")
			}, nothing, false, "replayed", false, nil, 1, "",
		},
		"the key is deleted, and another attempt is done": {
			rerun, func(c *crash) {
				c.admin.Del(c.t.Context(), c.lock(c.first))
				c.wantNext("fine")
			}, nothing, false, "replayed", true, []string{refused}, 2, "",
		},
		"nothing gets through, and another attempt is done": {
			rerun, func(c *crash) {
				c.victim.proxy.Partition()
				c.wantNext("fine")
				c.victim.proxy.Heal()
			}, nothing, false, "replayed", true, []string{lost, refused}, 2, "",
		},
		"the record is deleted": {
			reject, func(c *crash) { c.admin.Del(c.t.Context(), "{"+c.lock(c.first)+"}:r") }, nothing,
			false, "replayed", false,
			[]string{restored},
			1, "",
		},
		"all data is lost": {
			reject, func(c *crash) {
				c.flush()
				await(c.t, "the lease is lost", func() bool { return c.toldBy(c.victim, lost) })
			}, nothing, false, "replayed", false, []string{lost, restored}, 1, "",
		},
		"all data is lost, and a duplicate runs": {
			reject, func(c *crash) {
				c.flush()
				c.wantNext("fine")
			}, nothing, false, "replayed", true, []string{refused}, 2, "attempt 1, not 2; 2 charges, freed 0 times",
		},
		"all data is lost, and the record once more while a duplicate runs": overtaken(),
	}
}

// overtaken loses the record of the attempt that runs, and then of the next one,
// which runs until the first one has ended: that one must not restore it.
func overtaken() trouble {
	runs, mayEnd := make(chan struct{}), make(chan struct{})
	return trouble{
		policy: reject,
		breaks: func(c *crash) {
			c.ledger.hook(c.first.key, func(v visit) bool {
				if v.Charge {
					close(runs)
					<-mayEnd
				}
				return true
			})
			c.flush()
			c.clients.Go(func() { c.wantNext("fine") })
			<-runs
			c.admin.Del(c.t.Context(), "{"+c.lock(c.first)+"}:r")
		},
		mends: func(c *crash) {
			close(mayEnd)
			c.clients.Wait()
		},
		outcome: "replayed", own: true, told: []string{refused}, effects: 2,
		meant: "attempt 1, not 2; 2 charges, freed 0 times",
	}
}

// flush makes all data go, of this key.
func (c *crash) flush() {
	name := c.lock(c.first)
	c.admin.Del(c.t.Context(), name, "{"+name+"}:q", "{"+name+"}:r")
}

func (c *crash) toldBy(p *process, word string) bool {
	return p.told(word, c.framework.endpoint(c.first.policy, c.first.key)) > 0
}

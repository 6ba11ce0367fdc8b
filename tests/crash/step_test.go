package crash

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A recordState is the state of an attempt's record when its process is killed.
type recordState int

const (
	absent      recordState = iota // no record, or that of an aborted attempt
	interrupted                    // the attempt has begun
	done                           // the answer is stored
)

// A step is a point of a request at which its process is killed.
type step struct {
	recorded recordState
	charge   int  // how many charges the request has made
	inside   bool // the handler has started, so that a duplicate can wait
	answered bool // the client gets the complete answer
	read     bool // the client gets a part of the answer
	// arm makes the process be killed at this point.
	arm func(c *crashCase)
}

var steps = map[string]step{
	"begin is sent and lost": {arm: func(c *crashCase) { atLostResends(c.victim.proxy, isBegin, c.kill) }},
	"begin is done and its reply lost": {
		recorded: interrupted, arm: func(c *crashCase) { c.lost = atLostReply(c.victim.proxy, isBegin, c.kill) },
	},
	"the handler has started": {
		recorded: interrupted, inside: true, arm: func(c *crashCase) { c.atLedgerCall(false, c.kill) },
	},
	"the handler has charged": {
		recorded: interrupted, inside: true, charge: 1, arm: func(c *crashCase) { c.atLedgerCall(true, c.kill) },
	},
	"the commit is sent and lost": {
		recorded: interrupted, inside: true, charge: 1, arm: func(c *crashCase) { atLostResends(c.victim.proxy, isCommit, c.kill) },
	},
	"the commit is done and its reply lost": {
		recorded: done, inside: true, charge: 1, arm: func(c *crashCase) { c.lost = atLostReply(c.victim.proxy, isCommit, c.kill) },
	},
	"a part of the answer is sent": {
		recorded: done, inside: true, charge: 1, read: true, arm: func(c *crashCase) {
			c.first.extra = 10 * firstPart // more than the sockets' buffers hold
			c.first.reading = func(int) { c.kill() }
		},
	},
	"the answer is sent": {recorded: done, inside: true, charge: 1, answered: true, arm: func(*crashCase) {}},
	"the handler has failed after its charge": { // with a 500 or INTERNAL, and decides nothing
		recorded: interrupted, inside: true, charge: 1, arm: func(c *crashCase) { c.fail = true },
	},
	"the abort is sent and lost": {
		recorded: interrupted, inside: true, arm: func(c *crashCase) {
			c.refuse = true
			atLostResends(c.victim.proxy, isAbort, c.kill)
		},
	},
	"the abort is done and its reply lost": {
		recorded: absent, inside: true, arm: func(c *crashCase) {
			c.refuse = true
			c.lost = atLostReply(c.victim.proxy, isAbort, c.kill)
		},
	},
}

// repetitionsEnv sets how many times each step is tested, as in "20".
const repetitionsEnv = "REQLOCK_CRASHES"

// stepCases returns the cases of a step: with each policy, with and without a duplicate
// that waits in another process. The fast tier has one of the cases: mostly another one for the
// next step, and for another framework.
func stepCases(f framework, index int, s step) (cases []stepCase) {
	for _, policy := range []string{reject, rerun} {
		for _, withWaiter := range []bool{false, true} {
			if (!withWaiter || s.inside) && (!s.read || !f.atomic) {
				cases = append(cases, stepCase{policy: policy, withWaiter: withWaiter})
			}
		}
	}
	if len(cases) > 0 {
		cases[(f.fastCase+index)%len(cases)].isFast = true
	}
	return cases
}

type stepCase struct {
	policy     string
	withWaiter bool
	isFast     bool // the fast tier has the case
}

// A process is killed at each step of a request. Duplicates of the request wait in other
// processes, or come later.
func TestAProcessIsKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for name := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestbed(t, name)
			survivors := []*process{s.start(t, nil, patiently), s.start(t, nil, patiently)}
			s.loadScripts(survivors[0])
			t.Run("killed when", func(t *testing.T) {
				for range suite.Count(t, repetitionsEnv, 1) {
					for i, name := range slices.Sorted(maps.Keys(steps)) {
						for _, one := range stepCases(s.framework, i, steps[name]) {
							t.Run(fmt.Sprintf("%s, %s, waiter %v", name, one.policy, one.withWaiter), func(t *testing.T) {
								if !one.isFast {
									suite.Full(t, "is one of all combinations of a framework, a step, a policy and a waiter")
								}
								t.Parallel()
								c := &crashCase{testbed: s, t: t, step: steps[name], victim: s.start(t, nil), survivors: survivors}
								c.first = request{policy: one.policy, key: fmt.Sprintf("key-%d", c.victim.number)}
								c.run(one.withWaiter)
							})
						}
					}
				}
			})
			for _, p := range survivors {
				p.stop()
			}
			s.wantNoLocksLeft(t)
		})
	}
}

// loadScripts makes Redis load the scripts. From then on a process sends one command for
// each run of a script.
func (s *testbed) loadScripts(p *process) {
	s.t.Helper()
	for i, refuse := range []bool{false, true} {
		q := request{policy: reject, key: fmt.Sprintf("load-%d", i)}
		s.ledger.hook(q.key, func(ledgerCall) bool { return !refuse })
		if a, err := s.ask(p, q); err != nil || a.Fine == refuse {
			s.t.Errorf("%v, %v", a, err)
		}
	}
}

package crash

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// A fate is what is known in Redis of an attempt when its process dies.
type fate int

const (
	unbegun     fate = iota // nothing, or that it was aborted
	interrupted             // that it has begun
	done                    // its answer
)

// A step is a point at which a process is killed that serves a request.
type step struct {
	fate   fate
	charge int  // how many effects the request has had
	inside bool // the handler comes in, so that a duplicate can wait
	heard  bool // its client gets all of the answer
	read   bool // only of answers that are read in parts
	// arm sees to it that the process crashes at this point.
	arm func(c *crash)
}

var steps = map[string]step{
	"begin is sent, and Redis has not got it": {arm: func(c *crash) { whenNeverGot(c.victim.proxy, isBegin, c.kill) }},
	"begin is done, and its reply is not heard": {
		fate: interrupted, arm: func(c *crash) { whenUnheard(c.victim.proxy, isBegin, c.kill) },
	},
	"the handler has come in": {
		fate: interrupted, inside: true, arm: func(c *crash) { c.onVisit(false, c.kill) },
	},
	"the handler has had its effect": {
		fate: interrupted, inside: true, charge: 1, arm: func(c *crash) { c.onVisit(true, c.kill) },
	},
	"the commit is sent, and Redis has not got it": {
		fate: interrupted, inside: true, charge: 1, arm: func(c *crash) { whenNeverGot(c.victim.proxy, isCommit, c.kill) },
	},
	"the commit is done, and its reply is not heard": {
		fate: done, inside: true, charge: 1, arm: func(c *crash) { whenUnheard(c.victim.proxy, isCommit, c.kill) },
	},
	"a part of the answer is sent": {
		fate: done, inside: true, charge: 1, read: true, arm: func(c *crash) {
			c.first.long = 10 * half // more than the sockets hold
			c.first.reading = func(int) { c.kill() }
		},
	},
	"the answer is sent": {fate: done, inside: true, charge: 1, heard: true, arm: func(*crash) {}},
	"the abort is sent, and Redis has not got it": {
		fate: interrupted, inside: true, arm: func(c *crash) {
			c.refuse = true
			whenNeverGot(c.victim.proxy, isAbort, c.kill)
		},
	},
	"the abort is done, and its reply is not heard": {
		fate: unbegun, inside: true, arm: func(c *crash) {
			c.refuse = true
			whenUnheard(c.victim.proxy, isAbort, c.kill)
		},
	},
}

// often is how often each step is played.
func often(t *testing.T) int {
	t.Helper()
	text := os.Getenv(timesEnv)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no number of times", timesEnv, text)
	}
	return n
}

// timesEnv says how often each step is played, as in "20".
const timesEnv = "REQLOCK_CRASHES"

// A process is killed at each step. Duplicates of its request wait in other
// processes, or come later.
//
//faults:row 45
func TestAProcessIsKilledAtEachStep(t *testing.T) {
	for name := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, name)
			survivors := []*process{s.open(t, nil), s.open(t, nil)}
			s.warm(survivors[0])
			played := newCrowd(8)
			for range often(t) {
				for name, step := range steps {
					for policy := range policies {
						for _, waited := range []bool{false, true} {
							if waited && !step.inside || step.read && s.framework.whole {
								continue
							}
							played.play(t, fmt.Sprintf("%s, %s, waited for %v", name, policy, waited), func(t *testing.T) {
								c := &crash{site: s, t: t, step: step, victim: s.open(t, nil), survivors: survivors}
								c.first = question{policy: policy, key: fmt.Sprintf("key-%d", c.victim.number)}
								c.play(waited)
							})
						}
					}
				}
			}
			played.wait()
			for _, p := range survivors {
				p.stop()
			}
			s.wantTidy(t)
		})
	}
}

// warm makes the scripts known to Redis: from then on each is one command.
func (s *site) warm(p *process) {
	s.t.Helper()
	for i, refuse := range []bool{false, true} {
		q := question{policy: reject, key: fmt.Sprintf("warm-%d", i)}
		s.ledger.hook(q.key, func(visit) bool { return !refuse })
		if a, err := s.ask(p, q); err != nil || a.Fine == refuse {
			s.t.Errorf("%v, %v", a, err)
		}
	}
}

//go:build unix

package crash

import (
	"fmt"
	"syscall"
	"testing"
)

// A process stands still in its handler, for longer than its lease, and goes on
// when another one has the key.
//
//faults:row 14 limit: SIGSTOP in an idempotent request
//faults:row 46
func TestAProcessStandsStill(t *testing.T) {
	t.Parallel()
	s := newSite(t, "net/http")
	survivors := []*process{s.open(t, nil)}
	s.warm(survivors[0])
	for name, stood := range map[string]trouble{
		"and another attempt is done": {rerun, nil, nothing, false, "replayed", true, []string{refused}, 2, ""},
		"and its outcome is unknown":  {reject, nil, nothing, false, "replayed", false, nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crash{site: s, t: t, victim: s.open(t, nil), survivors: survivors}
			c.first = question{policy: stood.policy, key: fmt.Sprintf("still-%d", c.victim.number)}
			stood.breaks = func(c *crash) {
				c.signal(syscall.SIGSTOP)
				if stood.policy == rerun {
					c.wantNext("fine")
				} else {
					c.wantNext("outcome_unknown")
				}
				c.signal(syscall.SIGCONT)
			}
			c.suffer(stood)
			c.victim.stop()
		})
	}
	survivors[0].stop()
	s.wantTidy(t)
}

func (c *crash) signal(signal syscall.Signal) {
	if err := c.victim.child.Process.Signal(signal); err != nil {
		c.t.Error(err)
	}
}

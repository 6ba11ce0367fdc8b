//go:build unix

package crash

import (
	"fmt"
	"testing"
)

// A process is stopped in its handler for longer than its lease, and continues after
// another attempt has begun.
func TestAProcessIsStoppedInItsHandler(t *testing.T) {
	t.Parallel()
	s := newTestbed(t, "net/http")
	survivors := []*process{s.start(t, nil, patiently)}
	s.loadScripts(survivors[0])
	t.Run("stopped until", func(t *testing.T) {
		for name, stopped := range map[string]outage{
			"another attempt has committed": {rerun, nil, nothing, false, "replayed", true, []string{refused}, 2, ""},
			"the outcome is unknown":        {reject, nil, nothing, false, "replayed", false, nil, 1, ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := &crashCase{testbed: s, t: t, victim: s.start(t, nil), survivors: survivors}
				c.first = request{policy: stopped.policy, key: fmt.Sprintf("stopped-%d", c.victim.number)}
				stopped.breaks = func(c *crashCase) {
					c.must(c.victim.Pause())
					if stopped.policy == rerun {
						c.wantNext("fine")
					} else {
						c.wantNext("outcome_unknown")
					}
					c.must(c.victim.Resume())
				}
				c.runOutage(stopped)
				c.victim.stop()
			})
		}
	})
	survivors[0].stop()
	s.wantNoLocksLeft(t)
}

func (c *crashCase) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

package crew

import (
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Kill ends a process as a crash does. When it returns the process is gone, and
// another one, with a new number, has its clients.
func (c *Crew) Kill(process int) {
	c.tb.Helper()
	m := c.must(process)
	c.mustWork()
	c.mu.Lock()
	if m.stands {
		c.goesOn(m) // as far as the history is concerned, it now dies instead
	}
	c.deaths = append(c.deaths, history.Death{Process: process, From: clock.Now()})
	delete(c.members, process)
	c.mu.Unlock()
	m.kill()
	c.enlist(m.place, m.life+1)
}

// Stop makes a process stand still, and returns when it does.
func (c *Crew) Stop(process int) {
	c.tb.Helper()
	m := c.must(process)
	c.mu.Lock()
	m.stands = true
	c.deaths = append(c.deaths, history.Death{Process: process, From: clock.Now()})
	c.mu.Unlock()
	if err := stop(m.child); err != nil {
		c.tb.Fatalf("stop process %d: %v", process, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stands, err := standsStill(m.child)
		switch {
		case err != nil:
			c.tb.Fatalf("stop process %d: %v", process, err)
		case stands:
			return
		case time.Now().After(deadline):
			c.tb.Fatalf("process %d does not stand still after %v", process, patience)
		}
	}
}

// Continue lets a process go on that stands still.
func (c *Crew) Continue(process int) {
	c.tb.Helper()
	m := c.must(process)
	if err := resume(m.child); err != nil {
		c.tb.Fatalf("continue process %d: %v", process, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goesOn(m)
}

// goesOn ends the time in which a process stood still. The caller has locked mu.
func (c *Crew) goesOn(m *member) {
	m.stands = false
	for i := range c.deaths {
		if d := &c.deaths[i]; d.Process == m.number && d.To == 0 {
			d.To = clock.Now()
		}
	}
}

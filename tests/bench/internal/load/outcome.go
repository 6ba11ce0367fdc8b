package load

import (
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// An Outcome is what one process has seen. What is "in time" was granted before
// the window ended; the rest are waiters that were served after it.
type Outcome struct {
	Acquired, AcquiredInTime int64
	Handoffs, HandoffsInTime int64
	Shares                   []int64 // acquisitions in time, of each goroutine
	Stuck                    int64   // waits that were given up as hopeless
	Faults                   []string
	Waits                    *measure.Histogram
	Commands                 int64 // that this process has sent
	Used                     measure.Usage
	Rounds                   []Round // of a Burst
}

// A Round is one round of a Burst.
type Round struct {
	Opening   time.Time // when all began
	LastGrant time.Time // when the last of this process got its lock
}

// add adds what a worker has seen.
func (o *Outcome) add(w *worker) {
	o.Acquired += w.acquired
	o.AcquiredInTime += w.acquiredInTime
	o.Handoffs += w.handoffs
	o.HandoffsInTime += w.handoffsInTime
	o.Shares = append(o.Shares, w.acquiredInTime)
	o.Stuck += w.stuck
	if w.fault != nil {
		o.Faults = append(o.Faults, w.fault.Error())
	}
	o.Waits.Merge(w.waits)
}

// A bill is what a process had used when the work began.
type bill struct {
	crew     *Crew
	used     measure.Usage
	commands int64
}

// open begins to count what is used.
func (c *Crew) open() (bill, error) {
	used, err := measure.Used()
	return bill{c, used, c.commands.Commands()}, err
}

// settle writes what was used since into the outcome.
func (b bill) settle(o *Outcome) error {
	used, err := measure.Used()
	o.Used = used.Since(b.used)
	o.Commands = b.crew.commands.Commands() - b.commands
	return err
}

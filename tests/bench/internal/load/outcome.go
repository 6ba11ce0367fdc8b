package load

import (
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
)

// An Outcome is the result of one process. Locks "in time" were granted within the window.
// Others were granted to waiters after it.
type Outcome struct {
	Acquired, AcquiredInTime int64
	Handoffs, HandoffsInTime int64
	Shares                   []int64 // locks in time, by goroutine
	Stuck                    int64   // waits that were given up
	Faults                   []string
	Waits                    *measure.Histogram
	Commands                 int64 // sent by this process
	Used                     measure.Usage
	Rounds                   []Round // of a Burst
}

// A Round is one round of a Burst.
type Round struct {
	Start     time.Time // when the round began
	LastGrant time.Time // when the last goroutine of this process got its lock
}

// add adds the result of a worker.
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

// A usageStart is what a process had used when the work began.
type usageStart struct {
	workers  *Workers
	used     measure.Usage
	commands int64
}

// startUsage begins to measure the usage.
func (c *Workers) startUsage() (usageStart, error) {
	used, err := measure.Used()
	return usageStart{c, used, c.commands.Commands()}, err
}

// finish sets the usage since the start in the outcome.
func (b usageStart) finish(o *Outcome) error {
	used, err := measure.Used()
	o.Used = used.Since(b.used)
	o.Commands = b.workers.commands.Commands() - b.commands
	return err
}

package load

import (
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// An Outcome is the result of one process, or the sum over all processes. Locks "in time" were
// granted within the window.
type Outcome struct {
	Acquired, AcquiredInTime int64
	Handoffs, HandoffsInTime int64
	Starved                  int64    // waiters that gave up
	Faults                   []string // of goroutines that ended early
	Waits                    *measure.Histogram
	Commands                 int64 // sent to Redis
	Used                     measure.Usage
	Rounds                   []Round // of a burst
}

// costs are what a process had used when the work began.
type costs struct {
	used     measure.Usage
	commands int64
}

func (j *Job) costs() (costs, error) {
	used, err := measure.Used()
	return costs{used, j.commands.Commands()}, err
}

// outcome returns the sum over all workers, and what was used since the work began.
func (j *Job) outcome(before costs, workers []*worker) (*Outcome, error) {
	after, err := j.costs()
	o := &Outcome{
		Waits:    measure.NewHistogram(),
		Used:     after.used.Since(before.used),
		Commands: after.commands - before.commands,
	}
	for _, w := range workers {
		o.Acquired += w.acquired
		o.AcquiredInTime += w.acquiredInTime
		o.Handoffs += w.handoffs
		o.HandoffsInTime += w.handoffsInTime
		o.Starved += w.starved
		if w.fault != nil {
			o.Faults = append(o.Faults, w.fault.Error())
		}
		o.Waits.Merge(w.waits)
	}
	return o, err
}

// sum returns the sum over all processes. A round ends when the last goroutine of all processes
// has its lock.
func sum(outcomes []Outcome) Outcome {
	all := Outcome{Waits: measure.NewHistogram(), Rounds: outcomes[0].Rounds}
	for _, o := range outcomes {
		all.Acquired += o.Acquired
		all.AcquiredInTime += o.AcquiredInTime
		all.Handoffs += o.Handoffs
		all.HandoffsInTime += o.HandoffsInTime
		all.Starved += o.Starved
		all.Faults = append(all.Faults, o.Faults...)
		all.Waits.Merge(o.Waits)
		all.Commands += o.Commands
		all.Used.CPU += o.Used.CPU
		all.Used.Allocations += o.Used.Allocations
		for i, round := range o.Rounds {
			if round.LastGrant.After(all.Rounds[i].LastGrant) {
				all.Rounds[i].LastGrant = round.LastGrant
			}
		}
	}
	return all
}

// figures returns the figures of a run. Rates count the locks that were granted within the window.
// Costs count all granted locks.
func (s Shape) figures(o Outcome, window, serverCPU time.Duration) []report.Figure {
	locks, handoffs := float64(o.AcquiredInTime)/window.Seconds(), float64(o.HandoffsInTime)/window.Seconds()
	if s.Burst {
		seconds := make([]float64, len(o.Rounds))
		for i, round := range o.Rounds {
			seconds[i] = round.LastGrant.Sub(round.Start).Seconds()
		}
		all := float64(len(o.Rounds)) * measure.Median(seconds)
		locks, handoffs = float64(o.Acquired)/all, float64(o.Handoffs)/all
	}
	acquired := float64(o.Acquired)
	each := func(d time.Duration) time.Duration { return time.Duration(float64(d) / acquired) }
	costs := []report.Figure{
		report.Duration("client CPU/lock", each(o.Used.CPU)),
		report.Duration("Redis CPU/lock", each(serverCPU)),
		{Name: "allocs/lock", Value: float64(o.Used.Allocations) / acquired, Text: report.Number},
	}
	if s.OwnKeys {
		return append([]report.Figure{
			{Name: "locks/s", Value: locks, Text: report.Number},
			{Name: "commands/lock", Value: float64(o.Commands) / acquired, Text: report.Number},
			report.Duration("lock+release p50", o.Waits.Quantile(0.50)),
			report.Duration("p99", o.Waits.Quantile(0.99)),
			report.Duration("max", o.Waits.Longest),
		}, costs...)
	}
	return append([]report.Figure{
		{Name: "hand-offs/s", Value: handoffs, Text: report.Number},
		{Name: "locks/s", Value: locks, Text: report.Number},
		{Name: "commands/hand-off", Value: float64(o.Commands) / float64(o.Handoffs), Text: report.Number},
		report.Duration("wait p50", o.Waits.Quantile(0.50)),
		report.Duration("wait p99", o.Waits.Quantile(0.99)),
		report.Duration("wait max", o.Waits.Longest),
		{Name: "starved", Value: float64(o.Starved), Text: report.Number},
	}, costs...)
}

package load

import (
	"cmp"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// An Outcome is the result of a worker or a process, or a sum. Locks "in time" were
// granted within the window.
type Outcome struct {
	Acquired, AcquiredInTime int64
	Handoffs, HandoffsInTime int64
	Starved                  int64    // waiters that gave up
	Faults                   []string // of goroutines that ended early
	Waits                    *measure.Histogram
	Commands, Writes         int64 // commands sent to Redis, and how many writes to connections they took
	Used                     measure.Usage
	Rounds                   []Round // of a burst
	Phases                   *Phases // of many keys
}

// costs are what a process had used when the work began.
type costs struct {
	used             measure.Usage
	commands, writes int64
}

func (j *Job) costs() costs {
	return costs{measure.Used(), j.commands.Commands(), j.commands.Writes()}
}

// outcome returns the sum over all workers, and what was used since the work began.
func (j *Job) outcome(before costs, workers []*worker) *Outcome {
	after := j.costs()
	outcomes := make([]Outcome, len(workers))
	for i, w := range workers {
		outcomes[i] = w.Outcome
	}
	o := sum(outcomes)
	o.Used = after.used.Since(before.used)
	o.Commands, o.Writes = after.commands-before.commands, after.writes-before.writes
	return &o
}

// sum returns the sum over all workers, or over all processes. A round ends when the last goroutine
// of all processes has its lock.
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
		all.Writes += o.Writes
		all.Phases = cmp.Or(all.Phases, o.Phases)
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
	if o.Phases != nil {
		return s.manyFigures(o)
	}
	if s.OwnKeys {
		return append([]report.Figure{
			{Name: "locks/s", Value: locks, Text: report.Number},
			{Name: "commands/lock", Value: float64(o.Commands) / acquired, Text: report.Number},
			{Name: "writes/lock", Value: float64(o.Writes) / acquired, Text: report.Number},
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
		{Name: "time/hand-off", Value: 1e6 / handoffs, Text: report.Micros},
		{Name: "Redis CPU/hand-off", Value: float64(serverCPU.Microseconds()) / float64(o.Handoffs), Text: report.Micros},
	}, costs...)
}

// manyFigures returns the figures of a run with many keys. The time of waiters is that of their grants.
func (s Shape) manyFigures(o Outcome) []report.Figure {
	p, took := o.Phases, o.Phases.End.Took
	if s.Processes == 1 {
		took += p.Begin.Took
	}
	return []report.Figure{
		{Name: "locks/s", Value: float64(o.Acquired) / took.Seconds(), Text: report.Number},
		report.Duration("CPU/key to begin", p.Begin.CPU/time.Duration(s.Keys)),
		{Name: "CPU/key to end", Value: float64(p.End.CPU) / float64(time.Microsecond) / float64(o.Acquired), Text: report.Micros},
		{Name: "a core while idle", Value: float64(p.Idle.CPU) / float64(p.Idle.Took), Text: report.Percent},
		{Name: "commands/s while idle", Value: float64(p.Idle.Commands) / p.Idle.Took.Seconds(), Text: report.Number},
		{Name: "memory/key", Value: float64(p.Memory) / float64(s.Keys), Text: report.Bytes},
		{Name: "starved", Value: float64(o.Starved), Text: report.Number},
	}
}

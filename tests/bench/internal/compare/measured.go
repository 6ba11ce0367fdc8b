package compare

import (
	"encoding/json"
	"math"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/load"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
)

// A Run is the result of one lock under one load, once. Rates count the locks that were
// granted within the window. Costs count all granted locks.
type Run struct {
	Suite      string
	Lock       lock.Name
	Repetition int

	Acquired   int64    // granted locks, including those after the window
	Handoffs   int64    // of these, to another goroutine than the previous one
	Violations int64    // how often too many goroutines held the lock at a time
	Stuck      int64    // waits that were given up after all other goroutines had ended
	Faults     []string `json:",omitempty"`

	LocksPerSecond    float64
	HandoffsPerSecond float64

	// Waits are in microseconds. Without contention they are the time of lock and release
	// together.
	WaitP50, WaitP99, WaitMean, WaitMax float64
	Jain                                Number // fairness between goroutines, 0 to 1

	// MaxOverMean is the longest wait divided by the mean.
	MaxOverMean float64

	Commands int64 // sent by the clients
	// CommandsEach is the number of commands of the clients for each hand-off, or, without
	// hand-offs, for each lock.
	CommandsEach float64
	ServerCalls  map[string]int64 // counted by the server, including those of scripts
	ClientCPU    float64          // microseconds for each lock, all processes
	ServerCPU    float64          // microseconds for each lock
	Allocations  float64          // for each lock and its release
}

// A Number may be missing: it is NaN, and null in JSON.
type Number float64

// MarshalJSON returns the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// An observation is the raw data of a run.
type observation struct {
	outcomes   []load.Outcome // of all processes
	server     redisserver.Usage
	violations int64
}

// summarize computes a Run from an observation.
func summarize(s Suite, window time.Duration, e observation) Run {
	var (
		sum    load.Outcome
		used   measure.Usage
		waits  = measure.NewHistogram()
		shares []int64
		run    = Run{Suite: s.Name, Violations: e.violations, ServerCalls: e.server.Calls}
	)
	for _, o := range e.outcomes {
		sum.Acquired += o.Acquired
		sum.AcquiredInTime += o.AcquiredInTime
		sum.Handoffs += o.Handoffs
		sum.HandoffsInTime += o.HandoffsInTime
		run.Stuck += o.Stuck
		run.Commands += o.Commands
		run.Faults = append(run.Faults, o.Faults...)
		used.CPU += o.Used.CPU
		used.Allocations += o.Used.Allocations
		waits.Merge(o.Waits)
		shares = append(shares, o.Shares...)
	}
	run.Acquired, run.Handoffs = sum.Acquired, sum.Handoffs

	seconds := window.Seconds()
	if s.Burst {
		seconds = roundSeconds(e.outcomes)
		rounds := float64(len(e.outcomes[0].Rounds))
		run.LocksPerSecond = float64(sum.Acquired) / rounds / seconds
		run.HandoffsPerSecond = float64(sum.Handoffs) / rounds / seconds
	} else {
		run.LocksPerSecond = float64(sum.AcquiredInTime) / seconds
		run.HandoffsPerSecond = float64(sum.HandoffsInTime) / seconds
	}

	run.WaitP50, run.WaitP99 = micros(waits.Quantile(0.50)), micros(waits.Quantile(0.99))
	run.WaitMean, run.WaitMax = micros(waits.Mean()), micros(waits.Longest)
	run.Jain = Number(measure.Jain(shares))
	locks := float64(sum.Acquired)
	run.ClientCPU = micros(used.CPU) / locks
	run.ServerCPU = micros(e.server.CPU) / locks
	run.MaxOverMean = run.WaitMax / run.WaitMean
	run.CommandsEach = float64(run.Commands) / locks
	if s.Contended() {
		run.CommandsEach = float64(run.Commands) / float64(sum.Handoffs)
	}
	run.Allocations = float64(used.Allocations) / locks
	return run
}

// roundSeconds returns the median duration of a round, from its start until the last
// goroutine of all processes got its lock.
func roundSeconds(outcomes []load.Outcome) float64 {
	var seconds []float64
	for i, round := range outcomes[0].Rounds {
		last := round.LastGrant
		for _, o := range outcomes[1:] {
			if o.Rounds[i].LastGrant.After(last) {
				last = o.Rounds[i].LastGrant
			}
		}
		seconds = append(seconds, last.Sub(round.Start).Seconds())
	}
	return measure.Median(seconds)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

package report

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/reqlock/reqlock/tests/bench/internal/chart"
	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/growth"
	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/request"
)

// A chartSpec describes the chart of one figure of a suite.
type chartSpec struct {
	file   string // its name, without ".svg"
	suite  string
	title  string
	note   string
	of     figure
	format func(float64) string
}

// chartSpecs returns the charts of the comparisons.
func chartSpecs() []chartSpec {
	return []chartSpec{
		{
			"hot-handoffs", compare.Hot, "Hand-offs per second on one hot key",
			"4 processes of 16 goroutines, empty section; more is better", handoffsPerSecond, number,
		},
		{
			"hot-commands", compare.Hot, "Redis commands for each hand-off",
			"4 processes of 16 goroutines, empty section; less is better", commandsEach, number,
		},
		{
			"hot-longest-wait", compare.HotBusy, "The longest wait",
			"4 processes of 16 goroutines, 1 ms section; less is better", waitMax, duration,
		},
		{
			"hot-redis-cpu", compare.HotBusy, "CPU time of Redis for each lock",
			"4 processes of 16 goroutines, 1 ms section; less is better", serverCPU, duration,
		},
		{
			"line-locks", compare.Line, "Locks per second with 128 waiters",
			"one process, 1 ms section; more is better", locksPerSecond, number,
		},
		{
			"line-longest-wait", compare.Line, "The longest of 128 waiters' waits",
			"one process, 1 ms section; less is better", waitMax, duration,
		},
		{
			"burst-locks", compare.Burst4, "Locks per second in a burst",
			"128 callers of 4 processes, who lock once; more is better", locksPerSecond, number,
		},
		{
			"keys-locks", compare.Keys256, "Locks per second on 256 distinct keys",
			"256 goroutines of one process; more is better", locksPerSecond, number,
		},
		{
			"keys-cpu", compare.Keys256, "CPU time of the client for each lock and release",
			"256 goroutines of one process, each with its key; less is better", clientCPU, duration,
		},
		{
			"cluster-locks", compare.Cluster, "Locks per second on 256 distinct keys of a Redis Cluster",
			"3 masters, 256 goroutines of one process; more is better", locksPerSecond, number,
		},
		{
			"cluster-cpu", compare.Cluster, "CPU time of the client for each lock and release, on a Redis Cluster",
			"3 masters, 256 goroutines of one process, each with its key; less is better", clientCPU, duration,
		},
		{
			"permits-handoffs", compare.PermitsHot, "Hand-offs per second of 8 permits",
			"4 processes of 16 goroutines, empty section; more is better", handoffsPerSecond, number,
		},
		{
			"shared-locks", compare.SharedBusy, "Locks per second of readers and writers",
			"4 processes of 16 goroutines, 1 ms section, 9 of 10 turns read; more is better", locksPerSecond, number,
		},
		{
			"replicas-locks", compare.ReplicasKeys64, "Locks per second on 64 distinct keys of a master with 2 replicas",
			"64 goroutines of one process; more is better", locksPerSecond, number,
		},
		{
			"quorum-locks", compare.QuorumKeys64(3), "Locks per second on 64 distinct keys of a quorum",
			"3 servers, 64 goroutines of one process; more is better", locksPerSecond, number,
		},
		{
			"quorum-longest-wait", compare.QuorumHot(3), "The longest wait for a key of a quorum",
			"3 servers, 4 processes of 16 goroutines, 1 ms section; less is better", waitMax, duration,
		},
		{
			"quorum-burst-locks", compare.QuorumBurst(3), "Locks per second in a burst on a quorum",
			"3 servers, 128 callers of 4 processes, who lock once; more is better", locksPerSecond, number,
		},
		{
			"keys-p99", compare.Keys64, "99th percentile of lock and release",
			"64 goroutines of one process, each with its key; less is better", waitP99, duration,
		},
		{
			"lone-locks", compare.Lone, "Locks per second of one goroutine",
			"one uncontended key; more is better", locksPerSecond, number,
		},
		{
			"lone-allocations", compare.Lone, "Allocations for each lock and release",
			"one goroutine; less is better", allocations, number,
		},
	}
}

// WriteCharts draws all results into a directory, and creates it if necessary.
func (r *Results) WriteCharts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures are for everybody
		return err
	}
	var errs []error
	for _, p := range chartSpecs() {
		errs = append(errs, writeChart(dir, p.file, r.chartOf(p)))
	}
	errs = append(errs,
		writeChart(dir, "frameworks-requests", r.frameworksChart()),
		writeChart(dir, "idempotent-requests", r.idempotentChart()),
		writeChart(dir, "waiters-handoff", r.waitersChart()))
	return errors.Join(errs...)
}

// chartOf draws a figure of all locks.
func (r *Results) chartOf(p chartSpec) chart.Chart {
	c := chart.Chart{Title: p.title, Note: p.note}
	ours := []lock.Name{lock.Reqlock, lock.ReqlockPermits, lock.ReqlockShared, lock.ReqlockReplica, lock.ReqlockQuorum}
	for _, kind := range lock.Kinds() {
		value := r.median(p.suite, kind.Name, p.of)
		if !math.IsNaN(value) {
			c.Bars = append(c.Bars, chart.Bar{
				Label: string(kind.Name), Value: value, Text: p.format(value), Highlight: slices.Contains(ours, kind.Name),
			})
		}
	}
	return c
}

// frameworksChart draws the requests per second of each framework, with and without the
// lock.
func (r *Results) frameworksChart() chart.Chart {
	c := chart.Chart{
		Title: "Requests per second, without a lock and with reqlock",
		Note:  "a small request over loopback, 64 clients with a key each; more is better",
	}
	if len(r.Frameworks) == 0 {
		return c
	}
	for _, framework := range request.Frameworks() {
		for _, locked := range []bool{false, true} {
			label := framework
			if locked {
				label += ", locked"
			}
			value := medianOf(r.frameworkRuns(framework, locked), func(h request.FrameworkRun) float64 { return h.RequestsPerSecond })
			c.Bars = append(c.Bars, chart.Bar{Label: label, Value: value, Text: number(value), Highlight: locked})
		}
	}
	return c
}

// idempotentChart draws the requests per second of each framework.
func (r *Results) idempotentChart() chart.Chart {
	c := chart.Chart{
		Title: "Requests per second: plain, idempotent for the first time, and replayed",
		Note:  "a POST over loopback, 32 callers, each with keys of its own; more is better",
	}
	for _, framework := range idempotent.Frameworks() {
		for _, which := range []idempotent.Case{idempotent.Plain, idempotent.First, idempotent.Replay} {
			value := medianOf(r.idempotents(idempotent.OwnKeys, framework, which), requestsPerSecond)
			if !math.IsNaN(value) {
				c.Bars = append(c.Bars, chart.Bar{
					Label: framework + ", " + string(which), Value: value, Text: number(value),
					Highlight: framework != idempotent.Fiber && which != idempotent.Plain,
				})
			}
		}
	}
	return c
}

// waitersChart draws the time of a hand-off by the number of waiters.
func (r *Results) waitersChart() chart.Chart {
	c := chart.Chart{
		Title: "Time of one hand-off by the length of the line",
		Note:  "reqlock, waiters of one process for one key; less is better",
	}
	sizes, groups := grouped(r.Waiters, func(run growth.WaitersRun) int { return run.Waiters })
	for _, n := range sizes {
		value := medianOf(groups[n], func(run growth.WaitersRun) float64 { return run.Handoff })
		c.Bars = append(c.Bars, chart.Bar{
			Label: thousands(float64(n)) + " waiting", Value: value, Text: duration(value), Highlight: true,
		})
	}
	return c
}

// writeChart writes a chart to its file, unless it has no bars.
func writeChart(dir, name string, c chart.Chart) (err error) {
	if len(c.Bars) == 0 {
		return nil
	}
	file, err := os.Create(filepath.Join(dir, name+".svg")) //nolint:gosec // where the user asked for it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := c.WriteTo(file); err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	return nil
}

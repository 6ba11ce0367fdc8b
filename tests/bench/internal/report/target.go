package report

import (
	"io"
	"math"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/request"
)

// A target is one figure that reqlock must reach, mostly relative to another lock in the
// same run.
type target struct {
	load    string
	figure  string
	against string // "" if the target is absolute
	rule    rule
	goal    float64
	format  func(float64) string
	values  func(*Results) (ours, other float64)
}

// targets returns all targets.
func targets() []target {
	const (
		hot     = "hot key, 4 x 16, empty section"
		hotBusy = "hot key, 4 x 16, 1 ms section"
		line    = "hot key, 128 waiters, 1 ms section"
		burst1  = "burst of 128, 1 process"
		burst4  = "burst of 128, 4 processes"
		keys256 = "256 distinct keys"
		keys64  = "64 distinct keys"
		lone    = "one goroutine"
		channel = "in-process channel"
	)
	rueidislock := []lock.Name{lock.Rueidislock, lock.RueidislockNoLoop}
	return []target{
		{hot, "hand-offs/s", "rueidislock", timesMore, 25, number, more(compare.Hot, handoffsPerSecond, rueidislock...)},
		{hot, "hand-offs/s", "redislock", timesMore, 60, number, more(compare.Hot, handoffsPerSecond, lock.Redislock)},
		{hot, "hand-offs/s", "redsync", timesMore, 50, number, more(compare.Hot, handoffsPerSecond, lock.Redsync)},
		{hot, "Redis commands per hand-off", "", atMost, 0.05, number, alone(compare.Hot, commandsEach)},
		{line, "share of a channel's throughput", channel, timesMore, 0.95, number, more(compare.Line, locksPerSecond, lock.Channel)},
		{line, "longest wait / mean wait", "", atMost, 1.5, number, alone(compare.Line, maxOverMean)},
		{line, "Jain fairness", "", atLeast, 0.98, number, alone(compare.Line, jain)},
		{hotBusy, "longest wait", "rueidislock", timesLess, 3, duration, less(compare.HotBusy, waitMax, rueidislock...)},
		{hotBusy, "Redis CPU per lock", "rueidislock", timesLess, 8, duration, less(compare.HotBusy, serverCPU, rueidislock...)},
		{hotBusy, "Redis CPU per lock", "redislock", timesLess, 30, duration, less(compare.HotBusy, serverCPU, lock.Redislock)},
		{burst1, "locks/s", "rueidislock", timesMore, 8, number, more(compare.Burst1, locksPerSecond, rueidislock...)},
		{burst1, "locks/s", "redislock", timesMore, 50, number, more(compare.Burst1, locksPerSecond, lock.Redislock)},
		{burst4, "locks/s", "rueidislock", timesMore, 8, number, more(compare.Burst4, locksPerSecond, rueidislock...)},
		{burst4, "locks/s", "redislock", timesMore, 50, number, more(compare.Burst4, locksPerSecond, lock.Redislock)},
		{keys256, "locks/s", "rueidislock", timesMore, 2.2, number, more(compare.Keys256, locksPerSecond, rueidislock...)},
		{keys256, "locks/s", "redislock", timesMore, 4, number, more(compare.Keys256, locksPerSecond, lock.Redislock)},
		{keys256, "client CPU per lock", "rueidislock", timesLess, 3, duration, less(compare.Keys256, clientCPU, rueidislock...)},
		{keys256, "client CPU per lock", "redislock", timesLess, 6, duration, less(compare.Keys256, clientCPU, lock.Redislock)},
		{keys64, "p99 of lock + release", "rueidislock", timesLess, 3, duration, less(compare.Keys64, waitP99, rueidislock...)},
		{lone, "locks/s, synchronous release", "raw go-redis", timesMore, 0.95, number, more(compare.Lone, locksPerSecond, lock.Raw)},
		{lone, "allocations per lock + release", "raw go-redis", atMostMore, 8, number, less(compare.Lone, allocations, lock.Raw)},
		{keys256, "allocations per lock + release", "", atMost, 16, number, alone(compare.Keys256, allocations)},
		{
			"middleware over lock and handler", "time in µs, slowest framework", "", atMost, 2, duration,
			added(func(r request.MiddlewareRun) float64 { return r.AddedMicros() }),
		},
		{
			"middleware over lock and handler", "allocations, worst framework", "", atMost, 6, number,
			added(func(r request.MiddlewareRun) float64 { return r.AddedAllocations() }),
		},
	}
}

// more compares figures where more is better.
func more(suite string, of figure, others ...lock.Name) func(*Results) (ours, other float64) {
	return func(r *Results) (ours, other float64) {
		return r.median(suite, lock.Reqlock, of), r.highest(suite, of, others...)
	}
}

// less compares figures where less is better.
func less(suite string, of figure, others ...lock.Name) func(*Results) (ours, other float64) {
	return func(r *Results) (ours, other float64) {
		return r.median(suite, lock.Reqlock, of), r.lowest(suite, of, others...)
	}
}

// alone returns an absolute figure of reqlock.
func alone(suite string, of figure) func(*Results) (ours, other float64) {
	return func(r *Results) (ours, other float64) {
		return r.median(suite, lock.Reqlock, of), math.NaN()
	}
}

// added returns what a middleware adds, for the framework where it is most.
func added(of func(request.MiddlewareRun) float64) func(*Results) (ours, other float64) {
	return func(r *Results) (ours, other float64) {
		ours = math.Inf(-1)
		for _, framework := range request.Frameworks() {
			ours = math.Max(ours, medianOf(r.middlewares(framework), of)) // NaN if there is none
		}
		return ours, math.NaN()
	}
}

// PrintTargets prints all targets, the measured values, and whether they were reached.
func (r *Results) PrintTargets(w io.Writer) {
	t := newTable("load", "figure", "against", "reqlock", "other", "target", "measured", "verdict")
	t.left = 3
	for _, goal := range targets() {
		ours, other := goal.values(r)
		v := goal.rule.evaluate(ours, other, goal.goal)
		t.row(goal.load, goal.figure, goal.against, goal.format(ours), goal.format(other),
			goal.rule.goal(goal.goal), goal.rule.measured(v), v.String())
	}
	t.print(w)
}

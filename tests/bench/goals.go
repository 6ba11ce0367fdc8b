package main

import (
	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

// goals returns what reqlock wants to reach, beside the limits and the other locks of the same
// execution. The exit code does not depend on them.
func goals() []compare.Goal {
	of := func(suite, contestant, figure string) compare.Cell {
		return compare.Cell{Suite: suite, Contestant: contestant, Figure: figure}
	}
	beside := func(contestants ...string) (cells []compare.Cell) {
		for _, contestant := range contestants {
			cells = append(cells, compare.Cell{Contestant: contestant})
		}
		return cells
	}
	in := func(suite string) []compare.Cell { return []compare.Cell{{Suite: suite}} }
	rueidislock := beside(lock.Rueidislock, lock.RueidislockNoLoop)
	const (
		rate, p99, idle, served = "locks/s", "p99", "a core while idle", "CPU/key to end"
		handoffs, serverCPU     = "hand-offs/s", "Redis CPU/hand-off"
	)
	return []compare.Goal{
		{Case: "256 keys", Reached: of("keys-256", lock.Reqlock, rate), Anchors: beside(lock.RawPipelined), Times: 0.60},
		{Case: "256 keys", Reached: of("keys-256", lock.Reqlock, rate), Anchors: rueidislock, Times: 3},
		{Case: "256 keys", Reached: of("keys-256", lock.Reqlock, rate), Anchors: beside(lock.Redislock), Times: 5},
		{Case: "256 keys, Valkey 9", Reached: of("servers-valkey9-keys-256", lock.Reqlock, rate), Anchors: beside(lock.RawPipelined), Times: 0.75},
		{Case: "256 keys, Valkey 9", Reached: of("servers-valkey9-keys-256", lock.Reqlock, rate), Anchors: rueidislock, Times: 3},
		{Case: "64 keys", Reached: of("keys-64", lock.Reqlock, p99), Anchors: rueidislock, Times: 1. / 3, AtMost: true},
		{Case: "burst of 128 in 4 processes", Reached: of("burst-4x32", lock.Reqlock, rate), Anchors: rueidislock, Times: 12},
		{Case: "burst of 128 in 4 processes", Reached: of("burst-4x32", lock.Reqlock, rate), Anchors: beside(lock.Redislock), Times: 50},
		{Case: "lone caller", Reached: of("lone", lock.ReqlockPlain, rate), Anchors: beside(lock.Raw), Times: 1},
		{Case: "lone caller", Reached: of("lone", lock.Reqlock, rate), Anchors: beside(lock.Raw), Times: 1.2},
		{Case: "lone reader", Reached: of("shared-lone-reader", lock.ReqlockReader, rate), Anchors: beside(lock.Reqlock), Times: 0.85},
		{Case: "lone permit", Reached: of("permits-lone", lock.ReqlockPermits, rate), Anchors: beside(lock.Reqlock), Times: 0.85},
		{Case: "lone caller, quorum of five", Reached: of("quorum-5-lone", lock.ReqlockQuorum, rate), Anchors: beside(lock.RedsyncQuorum), Times: 1.1},
		{Case: "lone replay", Reached: of("idempotent-1", "net/http replay", "requests/s"), Anchors: beside("net/http plain"), Times: 0.35},
		{Case: "lone replay", Reached: of("idempotent-1", "net/http replay", "requests/s"), Anchors: beside("net/http GET")},
		{Case: "answer of 200 B", Reached: of("idempotent-memory", "reqlock 200 B", "memory/answer"), Anchors: beside("Fiber 200 B"), Plus: 450, AtMost: true},
		{Case: "one key, 100 processes", Reached: of("hot-100x1", lock.Reqlock, handoffs), Anchors: in("hot-10x1"), Times: 1 / 1.2},
		{Case: "one key, 1,000 processes", Reached: of("hot-1000x1", lock.Reqlock, handoffs), Anchors: in("hot-10x1"), Times: 1 / 1.2},
		{Case: "one key, 10 processes", Reached: of("hot-10x1", lock.Reqlock, serverCPU), Anchors: beside(lock.Rueidislock), Plus: 60, AtMost: true},
		{Case: "one key, 100 processes", Reached: of("hot-100x1", lock.Reqlock, serverCPU), Anchors: beside(lock.Rueidislock), Plus: 60, AtMost: true},
		{Case: "one key, 1,000 processes", Reached: of("hot-1000x1", lock.Reqlock, serverCPU), Anchors: beside(lock.Rueidislock), Plus: 60, AtMost: true},
		{Case: "50,000 waiters", Reached: of("waiting-50000", lock.Reqlock, served), Anchors: in("waiting-20000"), Times: 1.2, AtMost: true},
		{Case: "50,000 waiters", Reached: of("waiting-50000", lock.Reqlock, idle), Anchors: in("waiting-20000"), Plus: 0.15, AtMost: true},
		{Case: "hand-off in a process", Reached: of("hot-1x16", lock.Reqlock, "time/hand-off"), Anchors: beside(lock.Channel)},
		{Case: "first lock", Reached: of("first-lock", lock.Reqlock, "writes/lock"), Anchors: beside(lock.Raw), Times: 1, Plus: 2, AtMost: true},
		{Case: "first lock, no scripts", Reached: of("first-lock-no-scripts", lock.Reqlock, "writes/lock"), Anchors: []compare.Cell{of("first-lock", lock.Raw, "")}, Times: 1, Plus: 2, AtMost: true},
		{Case: "first lock", Reached: of("first-lock", lock.Reqlock, "lock+release p50"), Anchors: beside(lock.Raw)},
	}
}

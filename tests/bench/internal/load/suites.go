package load

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// Suites returns the suites of locks. A run takes one window or two; a burst has that many rounds.
// The servers of quorums belong to tb; the others belong to the TB of their suite.
func Suites(tb testing.TB, window time.Duration, rounds int) (suites []compare.Suite) {
	tb.Helper()
	for _, l := range slices.Concat(exclusive(), growth(), permits(), shared(), replicas(), quorums(tb), servers(tb)) {
		if l.start == nil {
			l.start = redisserver.Start
		}
		suites = append(suites, compare.Suite{
			Name: l.name, Title: l.shape.String() + l.where, Contestants: l.locks,
			Start: l.start, Picture: l.picture, MostRepetitions: l.mostRepetitions,
			Baseline: func(string) string { return l.locks[0] },
			Run: func(ctx context.Context, on *redisserver.Servers, name string) ([]report.Figure, error) {
				return l.shape.run(ctx, on, name, l.shape.window(window), rounds)
			},
		})
	}
	return suites
}

// A load is a suite of locks.
type load struct {
	name    string
	shape   Shape
	locks   []string
	start   func(testing.TB) *redisserver.Servers // nil for one server
	where   string                                // the servers, as the end of the title
	picture compare.Picture

	mostRepetitions int // 0 for no limit
}

const (
	// busy is the section of a holder that works.
	busy = time.Millisecond
	// few is how often the suites repeat their runs that are long, or beside which others matter more.
	few = 3
)

// exclusive returns the suites of exclusive locks on one server, or on a cluster. Where callers do
// not wait, there are two settings of rueidislock: NoLoopTracking is faster, and can lose waiters.
// No contended suite is on a cluster, where rueidislock can lose waiters with either setting.
func exclusive() []load {
	free := []string{
		lock.Reqlock, lock.ReqlockPlain, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.RueidislockNoLoop, lock.Raw,
	}
	many := append(slices.Clone(free), lock.RawPipelined)
	firsts := []string{lock.Reqlock, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.Raw}
	hot := []string{lock.Reqlock, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.Raw}
	bursts := []string{lock.Reqlock, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.RueidislockNoLoop, lock.Raw}
	return []load{
		{name: "lone", shape: ownKeys(1), locks: free, picture: compare.Picture{
			File: "lone-locks", Figure: "locks/s",
			Title: "Locks per second of one goroutine", Note: "one uncontended key; more is better",
		}},
		{name: "keys-64", shape: ownKeys(64), locks: free},
		{name: "keys-256", shape: ownKeys(256), locks: many, picture: compare.Picture{
			File: "keys-locks", Figure: "locks/s",
			Title: "Locks per second on 256 distinct keys", Note: "256 goroutines of one process; more is better",
		}},
		{
			name: "keys-256-cluster", shape: ownKeys(256), locks: free, start: redisserver.StartCluster,
			where: ", on a Redis Cluster of 3 masters",
		},
		{name: "first-lock", shape: firstLock(false), locks: firsts, where: ", each time by a new client and a new Locker"},
		{name: "first-lock-no-scripts", shape: firstLock(true), locks: firsts, where: ", the same on a server without scripts"},
		{name: "hot-4x16", shape: oneKey(4, 16, 0), locks: hot, picture: compare.Picture{
			File: "hot-handoffs", Figure: "hand-offs/s",
			Title: "Hand-offs per second on one hot key", Note: "4 processes of 16 goroutines, empty section; more is better",
		}},
		{name: "hot-4x16-1ms", shape: oneKey(4, 16, busy), locks: hot, picture: compare.Picture{
			File: "hot-longest-wait", Figure: "wait max",
			Title: "The longest wait", Note: "4 processes of 16 goroutines, 1 ms section; less is better",
		}},
		{name: "hot-1x16", shape: oneKey(1, 16, 0), locks: append(slices.Clone(hot), lock.Channel)},
		{name: "waiters-128", shape: oneKey(1, 128, busy), locks: append(slices.Clone(hot), lock.Channel)},
		{name: "burst-4x32", shape: burst(4, 32), locks: bursts},
	}
}

// growth returns the suites of ever more processes that each have one caller of the same key, and of
// one process with ever more keys, which it holds or waits for. For these, rueidislock must not
// track its own changes: it extends each lock again after it has extended it.
func growth() (loads []load) {
	add := func(name string, number int, shape Shape, locks ...string) {
		loads = append(loads, load{
			name: fmt.Sprintf(name, number), shape: shape, mostRepetitions: few, locks: append([]string{lock.Reqlock}, locks...),
		})
	}
	for _, processes := range []int{10, 100, 1000} {
		add("hot-%dx1", processes, crowd(processes, 0), lock.Rueidislock, lock.Redislock)
	}
	for _, keys := range []int{1, 1024, 16_384} {
		add("holding-%d", keys, manyKeys(1, keys), lock.RueidislockNoLoop, lock.Redislock)
	}
	for _, keys := range []int{1, 1000} {
		add("waiting-%d", keys, manyKeys(2, keys), lock.RueidislockNoLoop, lock.Redislock)
	}
	// redislock does not renew its locks, which end before it has taken the last one, and polls.
	add("holding-%d", 100_000, manyKeys(1, 100_000), lock.RueidislockNoLoop)
	add("waiting-%d", 20_000, manyKeys(2, 20_000), lock.RueidislockNoLoop)
	add("waiting-%d", 50_000, manyKeys(2, 50_000), lock.RueidislockNoLoop)
	return loads
}

// servers returns two suites for each line of the environment variable: the name, the version and
// the path of a server, as .ci/servers prints them.
func servers(tb testing.TB) (loads []load) {
	tb.Helper()
	for line := range strings.Lines(os.Getenv("REQLOCK_BENCH_SERVERS")) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			tb.Fatalf("REQLOCK_BENCH_SERVERS has a line that is not a name, a version and a path: %q", line)
		}
		lone := load{
			name: "servers-" + fields[0] + "-lone", shape: ownKeys(1), where: ", on " + fields[0] + " " + fields[1], mostRepetitions: few,
			locks: []string{lock.Reqlock, lock.Redislock, lock.Rueidislock, lock.RueidislockNoLoop, lock.Raw},
			start: func(tb testing.TB) *redisserver.Servers { tb.Helper(); return redisserver.StartProgram(tb, fields[2]) },
		}
		keys := lone
		keys.name, keys.shape = "servers-"+fields[0]+"-keys-256", ownKeys(256)
		keys.locks = append(slices.Clone(lone.locks), lock.RawPipelined)
		loads = append(loads, lone, keys)
	}
	return loads
}

// permits returns the suites of keys with eight permits.
func permits() []load {
	locks := []string{lock.ReqlockPermits, lock.RawPermits, lock.Asynq}
	simple := locks[:2] // a thousand servers of asynq would be measured more than their semaphores
	loads := []load{
		{name: "permits-lone", shape: ownKeys(1), locks: append(slices.Clone(locks), lock.Reqlock)},
		{name: "permits-waiters-128", shape: oneKey(1, 128, busy), locks: append(slices.Clone(locks), lock.Channel)},
		{name: "permits-4x16", shape: oneKey(4, 16, 0), locks: locks, picture: compare.Picture{
			File: "permits-handoffs", Figure: "hand-offs/s",
			Title: "Hand-offs per second of 8 permits", Note: "4 processes of 16 goroutines, empty section; more is better",
		}},
		{name: "permits-4x16-1ms", shape: oneKey(4, 16, busy), locks: locks},
		{name: "permits-10x1", shape: crowd(10, busy), locks: simple},
		{name: "permits-100x1", shape: crowd(100, busy), locks: simple},
		{name: "permits-1000x1", shape: crowd(1000, busy), locks: simple},
	}
	for i := range loads {
		loads[i].shape.Permits, loads[i].mostRepetitions = 8, few
	}
	return loads
}

// shared returns the suites of readers and writers.
func shared() []load {
	loads := []load{
		{name: "shared-lone", shape: ownKeys(1)},
		{name: "shared-waiters-128", shape: oneKey(1, 128, busy)},
		{name: "shared-4x16", shape: oneKey(4, 16, 0)},
		{name: "shared-4x16-1ms", shape: oneKey(4, 16, busy), picture: compare.Picture{
			File: "shared-locks", Figure: "locks/s", Title: "Locks per second of readers and writers",
			Note: "4 processes of 16 goroutines, 1 ms section, 9 of 10 turns read; more is better",
		}},
		{name: "shared-10x1", shape: crowd(10, busy)},
		{name: "shared-100x1", shape: crowd(100, busy)},
		{name: "shared-1000x1", shape: crowd(1000, busy)},
	}
	for i := range loads {
		loads[i].shape.Readers, loads[i].mostRepetitions = 90, few
		loads[i].locks = []string{lock.ReqlockShared, lock.RawShared}
	}
	return append(loads, load{
		name: "shared-lone-reader", shape: ownKeys(1), locks: []string{lock.ReqlockReader, lock.Reqlock},
	})
}

// replicas returns the suites of locks that a replica must acknowledge, beside locks that wait for
// no replica.
func replicas() []load {
	loads := []load{
		{name: "replicas-lone", shape: ownKeys(1)},
		{name: "replicas-keys-64", shape: ownKeys(64)},
		{name: "replicas-hot-4x16-1ms", shape: oneKey(4, 16, busy)},
	}
	for i := range loads {
		loads[i].start, loads[i].where = redisserver.StartReplicated, ", on a master with 2 replicas"
		loads[i].locks = []string{lock.ReqlockReplica, lock.RawReplica, lock.Reqlock, lock.Raw, lock.Redsync}
	}
	return loads
}

// quorums returns the suites of locks that a majority of three or of five servers must grant.
func quorums(tb testing.TB) []load {
	tb.Helper()
	// With reqlock, a server votes only after it has run for longer than the TTL. So all suites
	// share five servers, which the first one starts.
	five := sync.OnceValue(func() *redisserver.Servers { return redisserver.StartQuorum(tb, 5, lock.TTL) })
	var loads []load
	for _, servers := range []int{3, 5} {
		for _, l := range []load{
			{name: "lone", shape: ownKeys(1)},
			{name: "keys-64", shape: ownKeys(64)},
			{name: "hot-4x16-1ms", shape: oneKey(4, 16, busy)},
			{name: "burst-4x32", shape: burst(4, 32)},
		} {
			l.name = fmt.Sprintf("quorum-%d-%s", servers, l.name)
			l.where = fmt.Sprintf(", on %d servers of a quorum", servers)
			l.locks = []string{lock.ReqlockQuorum, lock.RedsyncQuorum}
			l.start = func(testing.TB) *redisserver.Servers { return five().First(servers) }
			if l.name == "quorum-3-keys-64" {
				l.picture = compare.Picture{
					File: "quorum-locks", Figure: "locks/s",
					Title: "Locks per second on 64 distinct keys of a quorum", Note: "3 servers, 64 goroutines of one process; more is better",
				}
			}
			loads = append(loads, l)
		}
	}
	return loads
}

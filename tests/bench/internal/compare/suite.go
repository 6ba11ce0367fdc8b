package compare

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// A Suite is one load, and the locks that it compares.
type Suite struct {
	Name       string
	Title      string
	Locks      []lock.Name
	Processes  int
	Goroutines int // in each process
	Section    time.Duration
	OwnKeys    bool // each goroutine has its own key, so there is no contention
	Burst      bool // each goroutine takes the lock once
	Stretch    int  // the number of windows of a run; 0 is 1
	Permits    int  // how many goroutines may hold a key at a time; 0 is one
	Readers    int  // of a hundred turns, so many take a shared lock
	Lockers    int  // in each process; 0 is one
	Masters    int  // of a Redis Cluster of its own; this and the next are 0 for the server that all suites share
	Replicas   int  // of a master of its own
	Nodes      int  // independent servers
}

// The names of the suites.
const (
	Lone    = "lone"
	Keys64  = "keys-64"
	Keys256 = "keys-256"
	Cluster = "cluster"
	Line    = "line-128"
	Hot     = "hot-4x16"
	HotBusy = "hot-4x16-1ms"
	Burst1  = "burst-1x128"
	Burst4  = "burst-4x32"

	FencedLone = "fenced-lone"
	FencedPair = "fenced-line-2"
	FencedLine = "fenced-line-16"
	FencedHot  = "fenced-hot-4x16"

	ReplicasLone   = "replicas-lone"
	ReplicasKeys64 = "replicas-keys-64"
	ReplicasHot    = "replicas-hot-4x16-1ms"
)

// QuorumLone returns the name of a suite on that many servers of a quorum.
func QuorumLone(nodes int) string { return fmt.Sprintf("quorum-%d-lone", nodes) }

// QuorumKeys64 returns a name like QuorumLone.
func QuorumKeys64(nodes int) string { return fmt.Sprintf("quorum-%d-keys-64", nodes) }

// QuorumHot returns a name like QuorumLone.
func QuorumHot(nodes int) string { return fmt.Sprintf("quorum-%d-hot-4x16-1ms", nodes) }

// QuorumBurst returns a name like QuorumLone.
func QuorumBurst(nodes int) string { return fmt.Sprintf("quorum-%d-burst-4x32", nodes) }

// longWindows is the number of windows of a run with a section of 1 ms. 128 waiters take
// 0.15 s in turn, and the first turns are slower.
const longWindows = 2

// Suites returns all suites.
func Suites() []Suite {
	// Locks with a queue are compared with other locks with waiters, and with the bare
	// commands if the key is free. A second setting of rueidislock is faster without
	// contention, and can lose waiters with it.
	free := []lock.Name{
		lock.Reqlock, lock.ReqlockPlain,
		lock.Redislock, lock.Redsync, lock.Rueidislock, lock.RueidislockNoLoop, lock.Raw,
	}
	contended := []lock.Name{lock.Reqlock, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.Raw}
	bursts := []lock.Name{lock.Reqlock, lock.Redislock, lock.Redsync, lock.Rueidislock, lock.RueidislockNoLoop, lock.Raw}
	suites := []Suite{
		{
			Name: Lone, Title: "one goroutine, one key",
			Locks: free, Processes: 1, Goroutines: 1, OwnKeys: true,
		},
		{
			Name: Keys64, Title: "64 goroutines, each with a key of its own",
			Locks: free, Processes: 1, Goroutines: 64, OwnKeys: true,
		},
		{
			Name: Keys256, Title: "256 goroutines, each with a key of its own",
			Locks: free, Processes: 1, Goroutines: 256, OwnKeys: true,
		},
		{
			Name: Cluster, Title: "256 goroutines, each with a key of its own, on a Redis Cluster of 3 masters",
			Locks: free, Processes: 1, Goroutines: 256, OwnKeys: true, Masters: 3,
		},
		{
			Name: Line, Title: "one hot key, 128 goroutines of one process, 1 ms section",
			Locks: append(contended[:len(contended):len(contended)], lock.Channel), Processes: 1, Goroutines: 128,
			Section: time.Millisecond, Stretch: longWindows,
		},
		{
			Name: Hot, Title: "one hot key, 4 processes of 16 goroutines, empty section",
			Locks: contended, Processes: 4, Goroutines: 16,
		},
		{
			Name: HotBusy, Title: "one hot key, 4 processes of 16 goroutines, 1 ms section",
			Locks: contended, Processes: 4, Goroutines: 16,
			Section: time.Millisecond, Stretch: longWindows,
		},
		{
			Name: Burst1, Title: "a burst of 128 callers who lock once, in one process",
			Locks: bursts, Processes: 1, Goroutines: 128, Burst: true,
		},
		{
			Name: Burst4, Title: "a burst of 128 callers who lock once, in 4 processes",
			Locks: bursts, Processes: 4, Goroutines: 32, Burst: true,
		},
	}
	suites = append(suites, fenced()...)
	suites = append(suites, permitSuites()...)
	suites = append(suites, sharedSuites()...)
	suites = append(suites, replicas()...)
	for _, nodes := range []int{3, runner.MaxQuorum} {
		suites = append(suites, quorum(nodes)...)
	}
	return suites
}

// fenced returns the suites of locks with fencing numbers, and the same ones without.
func fenced() []Suite {
	const with = ", with fencing numbers"
	locks := []lock.Name{lock.ReqlockFenced, lock.Reqlock}
	return []Suite{
		{
			Name: FencedLone, Title: "one goroutine, one key" + with,
			Locks: locks, Processes: 1, Goroutines: 1, OwnKeys: true,
		},
		{
			Name: FencedPair, Title: "one hot key, 2 goroutines of one process, empty section" + with,
			Locks: locks, Processes: 1, Goroutines: 2,
		},
		{
			Name: FencedLine, Title: "one hot key, 16 goroutines of one process, empty section" + with,
			Locks: locks, Processes: 1, Goroutines: 16,
		},
		{
			Name: FencedHot, Title: "one hot key, 4 processes of 16 goroutines, empty section" + with,
			Locks: locks, Processes: 4, Goroutines: 16,
		},
	}
}

// replicas returns the suites of locks that a replica must acknowledge, and the same ones
// without.
func replicas() []Suite {
	const where = ", on a master with 2 replicas"
	free := []lock.Name{lock.ReqlockReplica, lock.RawReplica, lock.Reqlock, lock.Raw, lock.Redsync}
	return []Suite{
		{
			Name: ReplicasLone, Title: "one goroutine, one key" + where,
			Locks: free, Processes: 1, Goroutines: 1, OwnKeys: true, Replicas: 2,
		},
		{
			Name: ReplicasKeys64, Title: "64 goroutines, each with a key of its own" + where,
			Locks: free, Processes: 1, Goroutines: 64, OwnKeys: true, Replicas: 2,
		},
		{
			Name: ReplicasHot, Title: "one hot key, 4 processes of 16 goroutines, 1 ms section" + where,
			Locks: free, Processes: 4, Goroutines: 16,
			Section: time.Millisecond, Stretch: longWindows, Replicas: 2,
		},
	}
}

// quorum returns the suites of locks that a majority of that many servers must grant.
func quorum(nodes int) []Suite {
	where := fmt.Sprintf(", on %d servers of a quorum", nodes)
	locks := []lock.Name{lock.ReqlockQuorum, lock.RedsyncQuorum}
	return []Suite{
		{
			Name: QuorumLone(nodes), Title: "one goroutine, one key" + where,
			Locks: locks, Processes: 1, Goroutines: 1, OwnKeys: true, Nodes: nodes,
		},
		{
			Name: QuorumKeys64(nodes), Title: "64 goroutines, each with a key of its own" + where,
			Locks: locks, Processes: 1, Goroutines: 64, OwnKeys: true, Nodes: nodes,
		},
		{
			Name: QuorumHot(nodes), Title: "one hot key, 4 processes of 16 goroutines, 1 ms section" + where,
			Locks: locks, Processes: 4, Goroutines: 16,
			Section: time.Millisecond, Stretch: longWindows, Nodes: nodes,
		},
		{
			Name: QuorumBurst(nodes), Title: "a burst of 128 callers who lock once, in 4 processes" + where,
			Locks: locks, Processes: 4, Goroutines: 32, Burst: true, Nodes: nodes,
		},
	}
}

// Contended reports whether all goroutines use the same key.
func (s Suite) Contended() bool { return !s.OwnKeys }

// window returns the duration of a run.
func (s Suite) window(unit time.Duration) time.Duration {
	return unit * time.Duration(max(s.Stretch, 1))
}

func (s Suite) String() string { return fmt.Sprintf("%s: %s", s.Name, s.Title) }

package fault

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A System is what a fault acts on: the servers, the network and the clients of a run. It
// has one of Server, Sentinels, Cluster and Quorum.
type System struct {
	testing.TB
	Server    *redistest.Server
	Sentinels *redistest.Sentinels
	Cluster   *redistest.Cluster
	Quorum    []Voter
	isPartial bool // Quorum has only some of the servers: see subset
	// Replicas is the number of replicas that must acknowledge a lease, or 0.
	Replicas int
	// Admin connects to the data without the network of the clients. In a quorum it
	// connects to the first server.
	Admin redis.UniversalClient
	// Network is between the servers and the clients.
	Network  *redistest.Network
	Workload Workload
	// Random makes all choices. It depends only on the seed of the run.
	Random *rand.Rand
	// Keys are the names of the locks in Redis.
	Keys []string
	TTL  time.Duration
	// Disrupt records a disruption from now on, until end is called. End may be called from
	// any goroutine, and more than once. Call Disrupt before the failure is injected, and
	// end after it is healed. A loss ends when no more data can be lost, even if clients
	// have not noticed it yet.
	Disrupt func(name string, lost Loss) (end func())
	// CounterAhead records that the counter of fencing numbers of a lock was ahead of the
	// server's clock when it was deleted, and by how much.
	CounterAhead func(key string, by time.Duration)
}

// A Voter is one server of a quorum, and a client that reads its data.
type Voter struct {
	*redistest.Server
	Admin *redis.Client
}

// A Workload is the client processes of a run.
type Workload interface {
	// Processes returns the numbers of the running processes.
	Processes() []int
	// Kill kills a process, and starts another one for its clients.
	Kill(process int)
	// Stop pauses a process, and Continue continues it.
	Stop(process int)
	Continue(process int)
	// AwaitGrants returns after that many more grants. It fails the run if that takes too
	// long.
	AwaitGrants(more int)
}

const (
	// awaitTimeout bounds the wait for the effect of a failure.
	awaitTimeout = 30 * time.Second

	// pollInterval is how often a condition is checked.
	pollInterval = 2 * time.Millisecond
)

// An injector causes a failure, and returns the function that heals it.
type injector func(s *System) (heal func())

// awaitGrants returns when locks are granted.
func (s *System) awaitGrants() {
	s.Helper()
	s.Workload.AwaitGrants(someGrants)
}

// runFor lets the clients work for a random time between least and most TTLs.
func (s *System) runFor(least, most float64) {
	s.sleep(time.Duration((least + (most-least)*s.Random.Float64()) * float64(s.TTL)))
}

// await returns when the condition holds. It fails the run after awaitTimeout.
func (s *System) await(what string, seen func() bool) {
	s.Helper()
	if !s.waitUpTo(awaitTimeout, seen) {
		s.Fatalf("not within %v: %s", awaitTimeout, what)
	}
}

// waitUpTo waits until the condition holds, for at most that time. It reports whether the
// condition holds.
func (s *System) waitUpTo(most time.Duration, seen func() bool) bool {
	for deadline := time.Now().Add(most); !seen(); s.sleep(pollInterval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// sleep waits for a time, or until the run is interrupted.
func (s *System) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.Context().Done():
	}
}

// forkRandom returns a source of random numbers for steps that are repeated until they
// succeed. The number of repetitions does not change what s.Random returns later.
func (s *System) forkRandom() *rand.Rand {
	return rand.New(rand.NewPCG(s.Random.Uint64(), s.Random.Uint64())) //nolint:gosec // they are to be repeated
}

// during declares a disruption, and a loss if lost is not nil, while do runs.
func (s *System) during(name string, lost Loss, do func()) {
	s.Helper()
	end := s.Disrupt(name, lost)
	do()
	end()
}

// repeat returns an injection of several rounds. Before and after each round locks are
// granted.
func repeat(n int, round func(s *System)) func(s *System) {
	return func(s *System) {
		for range n {
			s.awaitGrants()
			round(s)
		}
		s.awaitGrants()
	}
}

// injectTwice returns an injection that causes a failure twice, each time for a random time
// between least and most TTLs.
func injectTwice(name string, least, most float64, inject injector) func(s *System) {
	return repeat(2, func(s *System) {
		s.during(name, nil, func() {
			heal := inject(s)
			s.runFor(least, most)
			heal()
		})
	})
}

// companion returns the name of a key that belongs to a lock. The suffix ":q" names its
// queue, ":f" its counter of fencing numbers.
func companion(lock, suffix string) string {
	if strings.Contains(lock, "{") {
		return lock + suffix
	}
	return "{" + lock + "}" + suffix
}

// eachMaster calls do with each server that has data of its own.
func (s *System) eachMaster(do func(master redis.Cmdable) error) {
	s.Helper()
	for _, voter := range s.Quorum {
		if err := do(voter.Admin); err != nil {
			s.Fatalf("order to the voter %s: %v", voter.Addr(), err)
		}
	}
	if s.Quorum != nil {
		return
	}
	if err := redistest.EachMaster(s.Context(), s.Admin, do); err != nil {
		s.Fatalf("order to a master: %v", err)
	}
}

// command sends a command to each master. It fails the run if a master refuses the command.
func (s *System) command(args ...any) {
	s.Helper()
	s.eachMaster(func(master redis.Cmdable) error {
		pipe := master.Pipeline()
		pipe.Do(s.Context(), args...)
		if _, err := pipe.Exec(s.Context()); err != nil {
			return fmt.Errorf("%v: %w", args, err)
		}
		return nil
	})
}

// errorReplies returns the number of error replies of a class that the masters have sent.
func (s *System) errorReplies(class string) int {
	s.Helper()
	return s.infoSum("errorstats", "errorstat_"+class, "count")
}

// rejectedCommands returns the number of commands of locks that the masters have rejected
// before they executed them.
func (s *System) rejectedCommands() int {
	s.Helper()
	total := 0
	for _, name := range []string{"set", "evalsha", "eval"} {
		total += s.infoSum("commandstats", "cmdstat_"+name, "rejected_calls")
	}
	return total
}

// infoSum returns the sum of a number in a section of INFO, over all masters.
func (s *System) infoSum(section, line, field string) int {
	s.Helper()
	total := 0
	s.eachMaster(func(master redis.Cmdable) error {
		info, err := master.Info(s.Context(), section).Result()
		for pair := range strings.SplitSeq(command.InfoFields(info)[line], ",") {
			if number, ok := strings.CutPrefix(pair, field+"="); ok {
				n, _ := strconv.Atoi(number)
				total += n
			}
		}
		return err
	})
	return total
}

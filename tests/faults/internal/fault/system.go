package fault

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
)

// A System is what a fault can get its hands on. One of Server, Sentinels, Cluster and
// Quorum is there.
type System struct {
	testing.TB
	Server    *redistest.Server
	Sentinels *redistest.Sentinels
	Cluster   *redistest.Cluster
	Quorum    []Voter
	isPartial bool // Quorum is some of its servers: see Scene.of
	// Replicas is how many of them have to acknowledge a lease; 0 if none is asked.
	Replicas int
	// Admin sees the data as it is, past the network that the clients have. Of a quorum
	// it sees what its first server has.
	Admin redis.UniversalClient
	// Network is between the servers and the clients.
	Network  *network.Network
	Workload Workload
	// Random makes all choices: the seed of the run repeats them.
	Random *rand.Rand
	// Keys are the names of the locks in Redis.
	Keys []string
	TTL  time.Duration
	// Disrupt writes down that something is broken, until end is called, which may
	// be from any goroutine and more than once. It must be called before it is
	// broken, and end when it is well again: a loss is over when nothing more gets
	// lost, though those who have lost may not know yet.
	Disrupt func(name string, lost Loss) (end func())
	// CounterAhead records that the counter of fencing numbers of a lock was ahead of the
	// server's clock when it was deleted, and by how much. It may be nil.
	CounterAhead func(key string, by time.Duration)
}

// A Voter is one server of a quorum, and a client that sees its data as they are.
type Voter struct {
	*redistest.Server
	Admin *redis.Client
}

// A Workload is the client processes.
type Workload interface {
	// Processes are the numbers of those that run.
	Processes() []int
	// Kill ends a process as a crash does, and starts another in its place.
	Kill(process int)
	// Stop makes it stand still, and Continue go on.
	Stop(process int)
	Continue(process int)
	// AwaitGrants returns when so many more leases were granted; it fails the run
	// if that takes too long.
	AwaitGrants(more int)
	// Grants is how many there were.
	Grants() int
}

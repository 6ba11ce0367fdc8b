package fault

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
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
	Network  *network.Network
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
	// server's clock when it was deleted, and by how much. It may be nil.
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
	// Grants returns the number of grants so far.
	Grants() int
}

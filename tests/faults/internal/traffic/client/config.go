package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// ConfigEnv is the environment variable with the Config of a client process, as JSON.
const ConfigEnv = "REQLOCK_FAULTS_CLIENT"

// ReportFile is the descriptor of the pipe for the reports of a client process. The process
// ends when its standard input ends.
const ReportFile = 3

// A Config says what a client process does.
type Config struct {
	// Process is its number, which is unique in the run.
	Process int
	// First is the number of its first client, and Clients how many it has. Generation is
	// the number of earlier processes with these clients.
	First, Clients, Generation int
	// Seed is the seed of the run.
	Seed uint64

	// Redis has the addresses of the servers. Routes has the address to dial instead of
	// each of them. AsCluster makes the client one of a cluster, with one server.
	Redis     redistest.Options
	Routes    map[string]string
	AsCluster bool
	// Resource is the address of the resource.
	Resource string

	Keys   []string // of the locks
	Shared SharedKeys
	Prefix string // of all keys in Redis; "" for the default
	TTL    time.Duration
	// CommandTimeout is an option of the Locker, and ReadTimeout one of go-redis; 0 is the
	// default.
	CommandTimeout, ReadTimeout time.Duration
	// FailFast is an option of the Locker; 0 is the default. MinHold is the option of some
	// locks; 0 if no client sets it.
	FailFast, MinHold time.Duration
	// Quarantine makes the servers a quorum, unless it is 0. Replicas is the number of
	// replicas that must acknowledge a lease, within ReplicaTimeout.
	Quarantine     time.Duration
	Replicas       int
	ReplicaTimeout time.Duration
	// StallTime is how late the process may be before it reports a lag; 0 turns that off.
	StallTime time.Duration
	// Attempts is the percentage of turns that are attempts. SharedTurns is the percentage of
	// the others that take leases of shared keys.
	Attempts, SharedTurns int
	// ReadersOnly makes nearly all of those turns those of readers.
	ReadersOnly bool
	// FullSpeed makes all clients only take and release the first lock. They report only
	// the fencing numbers.
	FullSpeed bool
	// Careless makes holders wait beyond their lease, and write without checking its
	// context.
	Careless bool
}

// Main runs a process that was started as a client according to its Config. It returns the
// exit code and true. In any other process it returns false at once.
func Main() (code int, client bool) {
	text, client := os.LookupEnv(ConfigEnv)
	if !client {
		return 0, false
	}
	// An interrupt from a terminal reaches all processes. The campaign must end its clients
	// itself.
	signal.Ignore(os.Interrupt)
	var o Config
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// dial connects to an address by its route.
func (o *Config) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if to, rerouted := o.Routes[addr]; rerouted {
		addr = to
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
}

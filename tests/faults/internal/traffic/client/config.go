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

// ConfigEnv carries the Orders of a client process, as JSON.
const ConfigEnv = "REQLOCK_FAULTS_CLIENT"

// ReportFile is the descriptor of the pipe to which a client process writes its
// reports. It ends when its standard input does.
const ReportFile = 3

// Config are what a client process is to do.
type Config struct {
	// Process is its number, which no other process of the run has.
	Process int
	// First is the number of its first client, of so many. Life counts the
	// processes that had these clients before.
	First, Clients, Generation int
	// Seed is that of the run.
	Seed uint64

	// Redis says where the servers are, and Routes what is to be dialled instead
	// of an address.
	Redis  redistest.Options
	Routes map[string]string
	// Resource is the address of the resource.
	Resource string

	Keys   []string // of the locks
	Prefix string   // of all keys in Redis; "" is that of core
	TTL    time.Duration
	// CommandTimeout is that of the Locker, and ReadTimeout that of go-redis; 0 is
	// its default.
	CommandTimeout, ReadTimeout time.Duration
	// Quarantine, if it is not zero, makes the servers a quorum. Replicas is how many
	// have to acknowledge a lease, within the ReplicaTimeout.
	Quarantine     time.Duration
	Replicas       int
	ReplicaTimeout time.Duration
	// StallTime is how late the process may be before it tells of it; 0 if it is not to.
	StallTime time.Duration
	// Attempts is how many turns of a hundred are attempts.
	Attempts int
	// FullSpeed makes all clients take the first lock and release it, again and again,
	// and do nothing else. Only their fencing numbers are reported.
	FullSpeed bool
	// Careless makes holders sleep beyond their lease, and write without a look at
	// its context.
	Careless bool
}

// Main is the whole life of a process that was started as a client: it does what
// its orders say, and returns the exit code and true. In another process it
// returns false at once.
func Main() (code int, client bool) {
	text, client := os.LookupEnv(ConfigEnv)
	if !client {
		return 0, false
	}
	// Who interrupts the campaign from a terminal interrupts its clients too: it is
	// the campaign that ends them.
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

// Package client runs in a client process: a few clients share a Locker, as the requests of
// one server do, and use the lock in turns that a seed determines.
//
// A turn takes a lock, with one of several kinds of waits, reads and writes the registers
// of the resource, and releases the lock: in time, late, by a panic, or after the lease is
// lost. Or a turn begins an attempt at a payment for which other clients compete, charges
// for it, and commits, seals or aborts it, or leaves it without an end. An attempt that has
// lost its lease sometimes ends only after another one has begun.
//
// A client reports each call to the campaign by one write to a pipe before the call, and by
// another one after it.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// ConfigEnv is the environment variable with the Config of a client process, as JSON.
const ConfigEnv = "REQLOCK_FAULTS_CLIENT"

// ReportFile is the descriptor of the pipe for the reports of a client process. The process
// ends when its standard input ends.
const ReportFile = 3

// Options are what all client processes of a run have in common.
type Options struct {
	// Redis has the addresses of the servers.
	Redis redistest.Options
	// Clients is the number of clients in each process.
	Clients int
	// Seed determines the choices of all clients.
	Seed uint64
	// TTL is the TTL of each lease, and CommandTimeout the command timeout of the Lockers.
	TTL, CommandTimeout time.Duration
	// FailFast is after how long an outage the Lockers refuse new callers at once; 0 is the
	// default of the lock. MinHold is for how long some holders keep their key locked at
	// least; 0 if none does.
	FailFast, MinHold time.Duration
	// Quarantine is the quarantine of the Lockers of a quorum. Unless it is 0, the servers
	// are independent and form a quorum.
	Quarantine time.Duration
	// Replicas is the number of replicas that must acknowledge a lease within
	// ReplicaTimeout; 0 for none.
	Replicas       int
	ReplicaTimeout time.Duration
	// StallTime is how late a process may be before it reports a lag; 0 turns that off.
	StallTime time.Duration
	// Attempts is the percentage of turns that are attempts at a payment. All other turns take
	// locks. SharedTurns is the percentage of these that take permits, and shared and exclusive
	// leases of keys that have both.
	Attempts, SharedTurns int
	// ReadersOnly makes nearly all of those turns those of readers of one key.
	ReadersOnly bool
	// FullSpeed makes all clients only take and release the first lock. They report only the
	// fencing numbers.
	FullSpeed bool
	// Careless makes some holders wait beyond their lease, and write to the unfenced
	// register as if they still held the lock.
	Careless bool
}

// A Config says what a client process does.
type Config struct {
	Options
	// Process is its number, which is unique in the run.
	Process int
	// First is the number of its first client. Generation is the number of earlier processes
	// with these clients.
	First, Generation int
	// Routes has the address to dial instead of each server. AsCluster makes the client one
	// of a cluster, with one server.
	Routes    map[string]string
	AsCluster bool
	// Resource is the address of the resource.
	Resource string
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

// newLocker returns the Locker of the process, and a function that closes its clients of
// go-redis after it.
func (o *Config) newLocker() (locks *core.Locker, disconnect func() error, err error) {
	options := []core.Option{
		core.WithTTL(o.TTL), core.WithCommandTimeout(o.CommandTimeout),
	}
	if o.FailFast != 0 {
		options = append(options, core.WithFailFast(o.FailFast))
	}
	if o.Quarantine != 0 {
		return o.newQuorum(append(options, core.WithQuarantine(o.Quarantine)))
	}
	options = append(options, core.WithFencing(true))
	if o.Replicas > 0 {
		options = append(options, core.WithReplicas(o.Replicas, o.ReplicaTimeout))
	}
	rdb := o.connect(o.Redis.Addrs...)
	locks, err = core.New(rdb, options...)
	return locks, rdb.Close, err
}

// newQuorum returns a Locker on independent servers.
func (o *Config) newQuorum(options []core.Option) (locks *core.Locker, disconnect func() error, err error) {
	var clients []redis.UniversalClient
	for _, addr := range o.Redis.Addrs {
		clients = append(clients, o.connect(addr))
	}
	locks, err = core.NewQuorum(clients, options...)
	return locks, func() error {
		var failures []error
		for _, rdb := range clients {
			failures = append(failures, rdb.Close())
		}
		return errors.Join(failures...)
	}, err
}

// connect returns a client of go-redis. In every other process its reads end with their
// context, which the Locker handles differently.
func (o *Config) connect(addrs ...string) redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs: addrs, MasterName: o.Redis.MasterName, Password: o.Redis.Password,
		Dialer: o.dial, ContextTimeoutEnabled: o.Process%2 == 0,
	}
	if !o.AsCluster {
		return redis.NewUniversalClient(options)
	}
	cluster := options.Cluster()
	cluster.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addrs[0]}}}}, nil
	}
	return redis.NewClusterClient(cluster)
}

// Prefix is the prefix of all keys in Redis: the default of core.
const Prefix = "reqlock:"

// The names of the keys of shared leases, as clients call them.
const (
	permitsKey = "permits" // all leases are permits with one limit
	readersKey = "readers" // readers and writers, with fencing numbers
	mixedKey   = "mixed"   // any lease
)

// exclusiveKeys returns the names of the exclusive locks, as clients call them.
func exclusiveKeys() [3]string { return [...]string{"lock-0", "lock-1", unfencedKey} }

// unfencedKey is the exclusive lock without fencing numbers: another command takes it.
const unfencedKey = "lock-2"

// Keys returns the names in Redis of all keys that clients lock, the exclusive ones first.
func (o *Options) Keys() (keys []string) {
	exclusive := exclusiveKeys()
	if o.SharedTurns < 100 {
		keys = exclusive[:]
	}
	switch {
	case o.FullSpeed, o.SharedTurns == 0:
	case o.ReadersOnly:
		keys = append(keys, readersKey)
	default:
		keys = append(keys, permitsKey, readersKey, mixedKey)
	}
	for i := range keys {
		keys[i] = Prefix + keys[i]
	}
	return keys
}

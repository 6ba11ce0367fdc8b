package traffic

import (
	"cmp"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Settings are what the clients of a run are and do. What is zero has a default.
type Settings struct {
	// Redis says where the servers are.
	Redis redistest.Options
	// Routes returns where a process has to dial instead of each server; nil if
	// there is nothing in between. It is asked once for each process, also for
	// those that take the place of one that was killed.
	Routes func(process int) map[string]string

	// Processes is how many there are at a time: 4; and Clients how many are in
	// each: 2.
	Processes, Clients int
	// Seed repeats the choices of all clients.
	Seed uint64

	// Keys is how many locks there are: 3.
	Keys int
	// Prefix stands before the keys in Redis: "reqlock:".
	Prefix string
	// TTL is that of each lease: 500 ms.
	TTL time.Duration
	// CommandTimeout is that of the Lockers: 100 ms.
	CommandTimeout time.Duration
	// StallTime is how late a process may be before the history tells of it. It does
	// not if this is 0.
	StallTime time.Duration
	// ReadTimeout is that of go-redis, whose default it has.
	ReadTimeout time.Duration

	// Quarantine is that of the Lockers of a quorum, which the servers are if it is not
	// zero: then they are not one deployment, but each one alone.
	Quarantine time.Duration
	// Replicas is how many have to acknowledge a lease, within the ReplicaTimeout;
	// none if it is 0.
	Replicas       int
	ReplicaTimeout time.Duration

	// Attempts is how many turns of a hundred are attempts at a payment: 30; none
	// if it is negative. The others are locks.
	Attempts int
	// FullSpeed makes all clients do nothing but take the first lock: see
	// client.Orders.
	FullSpeed bool
	// Careless makes some holders sleep beyond their lease, and write to the
	// register that looks at no fences as if they still held it.
	Careless bool
}

// defaultPrefix is that of core.
const defaultPrefix = "reqlock:"

// completed returns the settings with their defaults.
func (s Settings) completed() Settings {
	s.Processes = cmp.Or(s.Processes, 4)
	s.Clients = cmp.Or(s.Clients, 2)
	s.Keys = cmp.Or(s.Keys, 3)
	s.Prefix = cmp.Or(s.Prefix, defaultPrefix)
	s.TTL = cmp.Or(s.TTL, 500*time.Millisecond)
	s.CommandTimeout = cmp.Or(s.CommandTimeout, 100*time.Millisecond)
	s.Attempts = cmp.Or(s.Attempts, 30)
	if s.Routes == nil {
		s.Routes = func(int) map[string]string { return nil }
	}
	return s
}

// keys are the locks, as they are asked for.
func (s Settings) keys() []string {
	keys := make([]string, s.Keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("lock-%d", i)
	}
	return keys
}

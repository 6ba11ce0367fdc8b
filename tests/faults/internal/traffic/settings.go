package traffic

import (
	"cmp"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// Settings describe the clients of a run. A zero value selects the default.
type Settings struct {
	// Redis has the addresses of the servers.
	Redis redistest.Options
	// Routes returns the address that a process dials instead of each server; nil for none.
	// It is called once for each process, including those that replace a killed one.
	Routes func(process int) map[string]string

	// Processes is the number of processes at a time (default 4), and Clients the number of
	// clients in each (default 2).
	Processes, Clients int
	// TwoKinds makes half of the processes use the client of a cluster, on one server.
	TwoKinds bool
	// Seed determines the choices of all clients.
	Seed uint64

	// Keys is the number of exclusive locks (default 3).
	Keys int
	// Prefix is the prefix of all keys in Redis (default "reqlock:").
	Prefix string
	// TTL is the TTL of each lease (default 500 ms).
	TTL time.Duration
	// CommandTimeout is the command timeout of the Lockers (default 100 ms).
	CommandTimeout time.Duration
	// FailFast is after how long an outage the Lockers refuse new callers at once (default:
	// that of the lock).
	FailFast time.Duration
	// MinHold is for how long some holders keep their key locked at least; 0 if none does.
	MinHold time.Duration
	// StallTime is how late a process may be before it reports a lag; 0 turns that off.
	StallTime time.Duration
	// ReadTimeout is the read timeout of go-redis (default: its own).
	ReadTimeout time.Duration

	// Quarantine is the quarantine of the Lockers of a quorum. Unless it is 0, the servers
	// are independent and form a quorum.
	Quarantine time.Duration
	// Replicas is the number of replicas that must acknowledge a lease within
	// ReplicaTimeout; 0 for none.
	Replicas       int
	ReplicaTimeout time.Duration

	// Attempts is the percentage of turns that are attempts at a payment (default 30); none
	// if it is negative. All other turns take locks.
	Attempts int
	// SharedTurns is the percentage of the other turns that take permits, and shared and
	// exclusive leases of keys that have both (default 40); none if it is negative.
	SharedTurns int
	// ReadersOnly makes nearly all of these turns those of readers of one key.
	ReadersOnly bool
	// FullSpeed makes all clients only take the first lock: see client.Config.
	FullSpeed bool
	// Careless makes some holders wait beyond their lease, and write to the unfenced
	// register as if they still held the lock.
	Careless bool
}

// defaultPrefix is the default prefix of core.
const defaultPrefix = "reqlock:"

// completed returns the settings with all defaults filled in.
func (s Settings) completed() Settings {
	s.Processes = cmp.Or(s.Processes, 4)
	s.Clients = cmp.Or(s.Clients, 2)
	s.Keys = cmp.Or(s.Keys, 3)
	s.Prefix = cmp.Or(s.Prefix, defaultPrefix)
	s.TTL = cmp.Or(s.TTL, 500*time.Millisecond)
	s.CommandTimeout = cmp.Or(s.CommandTimeout, 100*time.Millisecond)
	s.Attempts = cmp.Or(s.Attempts, 30)
	s.SharedTurns = cmp.Or(s.SharedTurns, 40)
	if s.Routes == nil {
		s.Routes = func(int) map[string]string { return nil }
	}
	return s
}

// sharedKeys are the names of the keys of shared leases, as clients call them.
var sharedKeys = client.SharedKeys{Permits: "permits", Readers: "readers", Mixed: "mixed"}

// allKeys returns the names of all keys that clients lock, as they call them.
func (s Settings) allKeys() []string {
	shared := []string{sharedKeys.Permits, sharedKeys.Readers, sharedKeys.Mixed}
	switch {
	case s.FullSpeed || s.SharedTurns < 0:
		return s.keys()
	case s.ReadersOnly:
		return []string{sharedKeys.Readers}
	case s.SharedTurns == 100:
		return shared
	}
	return append(s.keys(), shared...)
}

// keys returns the names of the exclusive locks, as clients call them.
func (s Settings) keys() []string {
	keys := make([]string, s.Keys)
	for i := range keys {
		keys[i] = fmt.Sprintf("lock-%d", i)
	}
	return keys
}

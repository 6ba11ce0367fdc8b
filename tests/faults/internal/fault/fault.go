package fault

import (
	"slices"
	"time"
)

// A Fault is one way in which a system can fail.
type Fault struct {
	// Name describes the fault as a short phrase, joined by dashes.
	Name string
	// On lists the deployments that the fault can happen to.
	On []Deployment
	// Replicas is the number of replicas that must acknowledge a lease, where replicas do.
	// The default is 1.
	Replicas int
	// Args are added to the command line of each server.
	Args []string
	// OneProcess puts all clients into one process, so that leases are handed off within it
	// for long.
	OneProcess bool
	// Clients is the number of clients in each process; 0 is the default.
	Clients int
	// TwoKinds makes half of the processes use the client of a cluster, on one server.
	TwoKinds bool
	// FailFast is after how long an outage clients are refused at once; 0 is the default of
	// the lock.
	FailFast time.Duration
	// MinHold is for how long some clients keep a key locked at least; 0 if none does.
	MinHold time.Duration
	// SharedOnly makes the clients use only permits and shared keys, so that many of them
	// compete.
	SharedOnly bool
	// Paying makes the clients mostly make payments, so that many attempts end in the fault.
	Paying bool
	// ReadersOnly makes nearly all of the clients readers of one key.
	ReadersOnly bool
	// FullSpeed makes the clients only take and release one lock, as fast as they can, on
	// connections that bypass the network of the run.
	FullSpeed *Callers
	// LosesData is set if Inject declares a loss of data.
	LosesData bool
	// Inject causes the failure, once or several times, while the clients work. When it
	// returns, the system is healthy.
	Inject func(s *System)
}

// Callers is the number of client processes, and of clients in each.
type Callers struct{ Processes, Clients int }

// All returns all faults, always in the same order: first those of one server, then those
// of several.
func All() []Fault {
	return slices.Concat(singleFaults(), sentinelFaults(), clusterFaults(), replicaFaults(), quorumFaults(), quorumFailFastFaults())
}

// singleFaults returns the faults of one server, of the network and of clients.
func singleFaults() []Fault {
	nothingFails := Fault{Name: "nothing-fails", On: allDeployments(), Inject: func(s *System) {
		s.runFor(3, 4)
		s.awaitGrants()
	}}
	return slices.Concat([]Fault{nothingFails}, serverFaults(), failFastFaults(), dataFaults(), errorFaults(),
		networkFaults(), commandFaults(), lateFaults(), clientFaults(), minHoldFaults(), sharedFaults(), speedFaults(), forgerFaults(), stormFaults())
}

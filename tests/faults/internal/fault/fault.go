package fault

import (
	"slices"
)

// A Fault is one way in which a run goes wrong.
type Fault struct {
	// Name says it in a few words, joined by dashes.
	Name string
	// On is which deployments it can happen to.
	On []Deployment
	// Replicas is how many have to acknowledge a lease where replicas do: 1 if it is 0.
	Replicas int
	// Args are added to the command line of each server.
	Args []string
	// OneProcess is set where it takes one process with many clients, which pass leases
	// on to each other for long, instead of several with a few.
	OneProcess bool
	// FullSpeed is set where the clients do nothing but take one lock and release it, past
	// the network of the scene, as fast as they can.
	FullSpeed *Callers
	// LosesData is set where Play declares a loss of data.
	LosesData bool
	// Inject makes it happen, once or several times, while the clients work. It
	// returns when all is well again: nothing of it is left behind.
	Inject func(s *System)
}

// Callers are how many client processes there are, and how many clients in each.
type Callers struct{ Processes, Clients int }

// All returns all faults, in an order that does not change: those that can happen
// to one server, then those that take several.
func All() []Fault {
	return slices.Concat(singleFaults(), sentinelFaults(), clusterFaults(), replicaFaults(), quorumFaults())
}

// singleFaults are those that can happen to one server, and to what lies between
// it and the clients.
func singleFaults() []Fault {
	calm := Fault{Name: "calm", On: allDeployments(), Inject: func(s *System) {
		s.runFor(3, 4)
		s.awaitGrants()
	}}
	return slices.Concat([]Fault{calm}, serverFaults(), dataFaults(), errorFaults(),
		networkFaults(), commandFaults(), lateFaults(), clientFaults(), speedFaults(), forgerFaults(), stormFaults())
}

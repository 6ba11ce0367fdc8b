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
	// Crowd is set where it takes one process with many clients, which pass leases
	// on to each other for long, instead of several with a few.
	Crowd bool
	// FullSpeed is set where the clients do nothing but take one lock and release it, past
	// the network of the scene, as fast as they can.
	FullSpeed *Callers
	// Losing is set where Play declares a loss of data.
	Losing bool
	// Play makes it happen, once or several times, while the clients work. It
	// returns when all is well again: nothing of it is left behind.
	Play func(s *Scene)
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
	calm := Fault{Name: "calm", On: everywhere(), Play: func(s *Scene) {
		s.linger(3, 4)
		s.well()
	}}
	return slices.Concat([]Fault{calm}, serverFaults(), dataFaults(), refusals(),
		networkFaults(), commandFaults(), lateFaults(), clientFaults(), speedFaults(), forgerFaults(), storms())
}

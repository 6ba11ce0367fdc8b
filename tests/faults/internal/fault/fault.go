// Package fault injects failures: of servers, of the network between them and the clients,
// and of the clients.
package fault

import (
	"fmt"
	"slices"
	"strings"
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
	// Inject causes the failure, once or several times, while the clients work. When it
	// returns, the system is healthy.
	Inject func(s *System)
}

// Callers is the number of client processes, and of clients in each.
type Callers struct{ Processes, Clients int }

// All returns all faults, always in the same order: first those of one server, then those
// of several.
func All() []Fault {
	return slices.Concat(singleFaults(), sentinelFaults(), clusterFaults(), replicaFaults(), quorumFaults())
}

// singleFaults returns the faults of one server, of the network and of clients.
func singleFaults() []Fault {
	nothingFails := Fault{Name: "nothing-fails", On: Deployments(), Inject: func(s *System) {
		s.runFor(3, 4)
		s.awaitGrants()
	}}
	return slices.Concat([]Fault{nothingFails}, serverFaults(), failFastFaults(), dataFaults(), errorFaults(),
		networkFaults(), commandFaults(), clientFaults(), minHoldFaults(), sharedFaults(), speedFaults(), forgerFaults(), revokeFaults(), ticketFaults(), stormFaults())
}

// A Deployment is the kind of servers of a run, and what its clients require of them.
type Deployment int

// The deployments.
const (
	// OnServer is one server.
	OnServer Deployment = iota
	// OnSentinels is a master with two replicas and three Sentinels.
	OnSentinels
	// OnCluster is a Redis Cluster of three masters, each with a replica.
	OnCluster
	// OnQuorum is five independent servers.
	OnQuorum
	// OnSentinelsReplicas and OnClusterReplicas have the same servers. There a lease is
	// granted only if replicas acknowledge it.
	OnSentinelsReplicas
	OnClusterReplicas
)

// Deployments returns all deployments.
func Deployments() []Deployment {
	return []Deployment{OnServer, OnSentinels, OnCluster, OnQuorum, OnSentinelsReplicas, OnClusterReplicas}
}

// String returns the name on the command line and in histories.
func (d Deployment) String() string {
	return [...]string{"server", "sentinels", "cluster", "quorum", "sentinels-replicas", "cluster-replicas"}[d]
}

// DeploymentOf returns the deployment with a name.
func DeploymentOf(name string) (Deployment, error) {
	all := Deployments()
	i := slices.IndexFunc(all, func(d Deployment) bool { return d.String() == name })
	if i < 0 {
		return OnServer, fmt.Errorf("no deployment is named %q: the names are %s", name, DeploymentNames())
	}
	return all[i], nil
}

// DeploymentNames returns all names as a list for a reader.
func DeploymentNames() string {
	var names []string
	for _, d := range Deployments() {
		names = append(names, d.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// CountsReplicas reports whether replicas must acknowledge a lease.
func (d Deployment) CountsReplicas() bool { return d == OnSentinelsReplicas || d == OnClusterReplicas }

// withOneCopy returns the deployments that store a lock in one place. A quorum has five
// copies: deleting one of them may destroy a majority.
func withOneCopy() []Deployment {
	return slices.DeleteFunc(Deployments(), func(d Deployment) bool { return d == OnQuorum })
}

func singleServer() []Deployment { return []Deployment{OnServer} }

// onSentinels and onCluster return the deployments with these servers.
func onSentinels() []Deployment { return []Deployment{OnSentinels, OnSentinelsReplicas} }

func onCluster() []Deployment { return []Deployment{OnCluster, OnClusterReplicas} }

// on returns the faults, with these deployments for each that names none.
func on(deployments []Deployment, faults ...Fault) []Fault {
	for i := range faults {
		if faults[i].On == nil {
			faults[i].On = deployments
		}
	}
	return faults
}

package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A Deployment is what a run takes place on: servers, and what its clients ask of
// them.
type Deployment int

// The deployments.
const (
	// OnServer is one server alone.
	OnServer Deployment = iota
	// OnSentinels is a master with two replicas, which Sentinels watch.
	OnSentinels
	// OnCluster is a Redis Cluster of three masters, each with a replica.
	OnCluster
	// OnQuorum is five servers that know nothing of each other, and vote.
	OnQuorum
	// OnSentinelsReplicas and OnClusterReplicas are the same servers as without
	// Replicas. A lease counts there once replicas have acknowledged it.
	OnSentinelsReplicas
	OnClusterReplicas
)

// Deployments returns all of them.
func Deployments() []Deployment {
	return []Deployment{OnServer, OnSentinels, OnCluster, OnQuorum, OnSentinelsReplicas, OnClusterReplicas}
}

// String is how a deployment is called on the command line and in histories.
func (d Deployment) String() string {
	return [...]string{"server", "sentinels", "cluster", "quorum", "sentinels-replicas", "cluster-replicas"}[d]
}

// DeploymentOf returns the deployment that is called so.
func DeploymentOf(name string) (Deployment, error) {
	all := Deployments()
	i := slices.IndexFunc(all, func(d Deployment) bool { return d.String() == name })
	if i < 0 {
		return OnServer, fmt.Errorf("there is no %q: there are %s", name, DeploymentNames())
	}
	return all[i], nil
}

// DeploymentNames is how all of them are called, for a reader.
func DeploymentNames() string {
	var names []string
	for _, d := range Deployments() {
		names = append(names, d.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Kind is of what kind its servers are. Those of a quorum are each alone.
func (d Deployment) Kind() redistest.Kind {
	switch d {
	case OnSentinels, OnSentinelsReplicas:
		return redistest.OnSentinels
	case OnCluster, OnClusterReplicas:
		return redistest.OnCluster
	default:
		return redistest.OnServer
	}
}

// CountsReplicas reports whether a lease counts only once replicas have
// acknowledged it.
func (d Deployment) CountsReplicas() bool { return d == OnSentinelsReplicas || d == OnClusterReplicas }

// allDeployments is all deployments.
func allDeployments() []Deployment { return Deployments() }

// withOneCopy is where what is told of a key has one place. What a quorum is told of it
// has five: to take it away from any of them may take away a majority.
func withOneCopy() []Deployment {
	return slices.DeleteFunc(Deployments(), func(d Deployment) bool { return d == OnQuorum })
}

// singleServer is one server alone.
func singleServer() []Deployment { return []Deployment{OnServer} }

// onSentinels and onCluster are those servers, whatever their clients ask of them.
func onSentinels() []Deployment { return []Deployment{OnSentinels, OnSentinelsReplicas} }

func onCluster() []Deployment { return []Deployment{OnCluster, OnClusterReplicas} }

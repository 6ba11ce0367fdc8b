package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

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

// Kind returns the kind of the servers. Each server of a quorum is a single one.
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

// CountsReplicas reports whether replicas must acknowledge a lease.
func (d Deployment) CountsReplicas() bool { return d == OnSentinelsReplicas || d == OnClusterReplicas }

func allDeployments() []Deployment { return Deployments() }

// withOneCopy returns the deployments that store a lock in one place. A quorum has five
// copies: deleting one of them may destroy a majority.
func withOneCopy() []Deployment {
	return slices.DeleteFunc(Deployments(), func(d Deployment) bool { return d == OnQuorum })
}

func singleServer() []Deployment { return []Deployment{OnServer} }

// onSentinels and onCluster return the deployments with these servers.
func onSentinels() []Deployment { return []Deployment{OnSentinels, OnSentinelsReplicas} }

func onCluster() []Deployment { return []Deployment{OnCluster, OnClusterReplicas} }

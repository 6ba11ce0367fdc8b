package campaign

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// servers are the servers of one run, healthy and without data.
type servers struct {
	on        fault.Deployment
	server    *redistest.Server
	sentinels *redistest.Sentinels
	cluster   *redistest.Cluster
	quorum    []*redistest.Server
}

// voters is the number of servers of a quorum.
const voters = 5

// startServers starts the servers of a deployment.
func startServers(tb testing.TB, on fault.Deployment, args []string) *servers {
	tb.Helper()
	g := &servers{on: on}
	switch on {
	case fault.OnServer:
		g.server = redistest.Start(tb, args...)
	case fault.OnSentinels, fault.OnSentinelsReplicas:
		g.sentinels = redistest.StartSentinel(tb, args...)
	case fault.OnCluster, fault.OnClusterReplicas:
		g.cluster = redistest.StartCluster(tb, args...)
	case fault.OnQuorum:
		for range voters {
			g.quorum = append(g.quorum, redistest.Start(tb, args...))
		}
	}
	return g
}

// data returns the servers that store data.
func (g *servers) data() []*redistest.Server {
	switch {
	case g.sentinels != nil:
		return g.sentinels.Servers()
	case g.cluster != nil:
		return g.cluster.Nodes()
	case g.quorum != nil:
		return g.quorum
	default:
		return []*redistest.Server{g.server}
	}
}

// options returns what a client process needs to connect.
func (g *servers) options() redistest.Options {
	if g.sentinels != nil {
		return redistest.Options{MasterName: redistest.MasterName, Addrs: addresses(g.sentinels.Sentinels())}
	}
	return redistest.Options{Addrs: addresses(g.data())}
}

// addresses returns the addresses of servers.
func addresses(servers []*redistest.Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// admin returns a client for the data: in a quorum, for the data of the first server.
func (g *servers) admin(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	switch {
	case g.sentinels != nil:
		return g.sentinels.Client(tb)
	case g.cluster != nil:
		return g.cluster.Client(tb)
	default:
		return g.data()[0].Client(tb)
	}
}

// system returns a fault.System with these servers.
func (g *servers) system(tb testing.TB) *fault.System {
	tb.Helper()
	s := &fault.System{TB: tb, Server: g.server, Sentinels: g.sentinels, Cluster: g.cluster, Admin: g.admin(tb)}
	for _, server := range g.quorum {
		s.Quorum = append(s.Quorum, fault.Voter{Server: server, Admin: server.Client(tb)})
	}
	return s
}

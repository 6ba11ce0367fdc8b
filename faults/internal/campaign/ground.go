package campaign

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/faults/internal/fault"
	"github.com/reqlock/reqlock/internal/redistest"
)

// A ground is the servers on which a run takes place: its own, healthy and empty.
type ground struct {
	kind      redistest.Kind
	server    *redistest.Server
	sentinels *redistest.Sentinels
	cluster   *redistest.Cluster
}

// start starts servers of the kind.
func start(tb testing.TB, kind redistest.Kind, args []string) *ground {
	tb.Helper()
	g := &ground{kind: kind}
	switch kind {
	case redistest.OnServer:
		g.server = redistest.Start(tb, args...)
	case redistest.OnSentinels:
		g.sentinels = redistest.StartSentinel(tb, args...)
	case redistest.OnCluster:
		g.cluster = redistest.StartCluster(tb, args...)
	}
	return g
}

// data returns the servers that have data.
func (g *ground) data() []*redistest.Server {
	switch g.kind {
	case redistest.OnSentinels:
		return g.sentinels.Servers()
	case redistest.OnCluster:
		return g.cluster.Nodes()
	default:
		return []*redistest.Server{g.server}
	}
}

// options say to a client process where the servers are.
func (g *ground) options() redistest.Options {
	if g.kind == redistest.OnSentinels {
		return redistest.Options{MasterName: redistest.MasterName, Addrs: addresses(g.sentinels.Sentinels())}
	}
	return redistest.Options{Addrs: addresses(g.data())}
}

// addresses returns where servers are.
func addresses(servers []*redistest.Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// admin returns a client that sees the data as it is.
func (g *ground) admin(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	switch g.kind {
	case redistest.OnSentinels:
		return g.sentinels.Client(tb)
	case redistest.OnCluster:
		return g.cluster.Client(tb)
	default:
		return g.server.Client(tb)
	}
}

// scene returns a scene with these servers.
func (g *ground) scene(tb testing.TB) *fault.Scene {
	tb.Helper()
	return &fault.Scene{
		TB: tb, Kind: g.kind, Server: g.server, Sentinels: g.sentinels, Cluster: g.cluster, Admin: g.admin(tb),
	}
}

package redistest

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Kind is a way to deploy Redis.
type Kind int

const (
	// OnServer is a single server.
	OnServer Kind = iota
	// OnSentinels is a master with replicas, which sentinels monitor.
	OnSentinels
	// OnCluster is a Redis Cluster.
	OnCluster
)

// Kinds returns all kinds, for tests that run on each.
func Kinds() []Kind { return []Kind{OnServer, OnSentinels, OnCluster} }

// kindNames are the names of the kinds.
var kindNames = [...]string{OnServer: "single", OnSentinels: "sentinel", OnCluster: "cluster"}

// String returns the name of the kind, which is also the name of its subtests.
func (k Kind) String() string { return kindNames[k] }

// SkipSentinels skips a test of the kind OnSentinels in the fast tier. Without a failover, that
// master does what a single server does.
func (k Kind) SkipSentinels(tb testing.TB) {
	tb.Helper()
	if k == OnSentinels {
		suite.Full(tb, "repeats the test on a master that Sentinel monitors")
	}
}

// SkipRepeats skips a test in the fast tier, except on a single server.
func (k Kind) SkipRepeats(tb testing.TB) {
	tb.Helper()
	if k != OnServer {
		suite.Full(tb, "repeats the test on another kind of Redis")
	}
}

// Start starts servers of the kind by [Start], [StartSentinel] or [StartCluster].
func (k Kind) Start(tb testing.TB, args ...string) *Deployment {
	tb.Helper()
	d := &Deployment{Kind: k}
	switch k {
	case OnSentinels:
		d.sentinels = StartSentinel(tb, args...)
		d.servers = d.sentinels.servers
		d.await = d.sentinels.Await
	case OnCluster:
		d.cluster = StartCluster(tb, args...)
		d.servers = d.cluster.nodes
		d.await = d.cluster.Await
	case OnServer:
		d.servers = group{Start(tb, args...)}
		d.await = func() {}
	}
	return d
}

package compare

import (
	"context"
	"testing"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// A deployment is the Redis that a suite runs on.
type deployment interface {
	Addrs() []string
	Clear(ctx context.Context) error
	Used(ctx context.Context) (redisserver.Usage, error)
}

// deploy returns the deployment of the suite. Clusters and replicas belong to tb, which is that of
// the suite, so that they do not use CPU during other suites.
func (s Suite) deploy(tb testing.TB, l *runner.Runner) deployment {
	tb.Helper()
	switch {
	case s.Masters > 0:
		return redisserver.StartCluster(tb, s.Masters)
	case s.Replicas > 0:
		return redisserver.StartReplicated(tb, s.Replicas)
	case s.Nodes > 0:
		return l.Quorum(tb, s.Nodes)
	default:
		return l.Server
	}
}

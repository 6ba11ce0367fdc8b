package compare

import (
	"context"

	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// A deployment is the Redis that a suite runs on.
type deployment interface {
	Addrs() []string
	Clear(ctx context.Context) error
	Used(ctx context.Context) (redisserver.Usage, error)
}

// deploy returns the deployment of the suite, and the function that stops it. Clusters and
// replicas belong to one suite, so that they do not use CPU during the others.
func (s Suite) deploy(ctx context.Context, l *runner.Runner) (on deployment, end func() error, err error) {
	stays := func() error { return nil }
	switch {
	case s.Masters > 0:
		cluster, err := redisserver.StartCluster(ctx, s.Masters)
		return cluster, cluster.Stop, err
	case s.Replicas > 0:
		replicated, err := redisserver.StartReplicated(ctx, s.Replicas)
		return replicated, replicated.Stop, err
	case s.Nodes > 0:
		nodes, err := l.Quorum(ctx, s.Nodes)
		return nodes, stays, err
	default:
		return l.Server, stays, nil
	}
}

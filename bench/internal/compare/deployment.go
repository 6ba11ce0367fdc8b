package compare

import (
	"context"

	"github.com/reqlock/reqlock/bench/internal/lab"
	"github.com/reqlock/reqlock/bench/internal/redisserver"
)

// A deployment is the Redis that a suite runs on.
type deployment interface {
	Addrs() []string
	Clear(ctx context.Context) error
	Used(ctx context.Context) (redisserver.Usage, error)
}

// deploy returns the deployment of the suite, and what ends it. A cluster is the
// suite's own, so that its nodes do not disturb the others.
func (s Suite) deploy(ctx context.Context, l *lab.Lab) (on deployment, end func() error, err error) {
	if s.Masters == 0 {
		return l.Server, func() error { return nil }, nil
	}
	cluster, err := redisserver.StartCluster(ctx, s.Masters)
	if err != nil {
		return nil, nil, err
	}
	return cluster, cluster.Stop, nil
}

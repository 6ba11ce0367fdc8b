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

// A server is a deployment that can be ended.
type server interface {
	deployment
	Stop() error
}

// deploy returns the deployment of the suite, and what ends it. Unless it is the one
// server of all suites it is the suite's own, so that it does not disturb the others.
func (s Suite) deploy(ctx context.Context, l *lab.Lab) (on deployment, end func() error, err error) {
	var own server
	switch {
	case s.Masters > 0:
		own, err = redisserver.StartCluster(ctx, s.Masters)
	case s.Replicas > 0:
		own, err = redisserver.StartReplicated(ctx, s.Replicas)
	case s.Nodes > 0:
		own, err = redisserver.StartNodes(ctx, s.Nodes)
	default:
		return l.Server, func() error { return nil }, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return own, own.Stop, nil
}

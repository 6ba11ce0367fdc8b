package lock

import (
	"context"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/stack"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A reqlock is the lock of this project.
type reqlock struct{ *stack.Stack }

// replicaTime is how long a replica may take to acknowledge a lock, here and in the bare
// commands: much longer than it takes.
const replicaTime = 200 * time.Millisecond

func openReqlock(c Config) (Locker, error) {
	return reqlockOf(stack.On(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), c.Commands))
}

func openReqlockPlain(c Config) (Locker, error) {
	return reqlockOf(stack.On(wire.NewClient(c.Addrs, c.Commands), c.Commands))
}

func openReqlockFenced(c Config) (Locker, error) {
	return reqlockOf(stack.On(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), c.Commands, core.WithFencing(true)))
}

func openReqlockReplica(c Config) (Locker, error) {
	return reqlockOf(stack.On(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), c.Commands,
		core.WithReplicas(1, replicaTime), core.WithCommandTimeout(4*replicaTime)))
}

func openReqlockQuorum(c Config) (Locker, error) {
	return reqlockOf(stack.OnQuorum(wire.NewClients(c.Addrs, c.Commands, wire.Deadlines), c.Commands))
}

func reqlockOf(s *stack.Stack, err error) (Locker, error) {
	if err != nil {
		return nil, err
	}
	return reqlock{s}, nil
}

// manyLockersTimeout bounds a command where up to a thousand Lockers send theirs at the same
// time. The bare commands have the timeouts of go-redis, which are longer.
const manyLockersTimeout = 2 * time.Second

func openReqlockPermits(c Config) (Locker, error) {
	return reqlockOf(stack.On(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), c.Commands,
		core.WithPermits(max(1, c.Permits)), core.WithCommandTimeout(manyLockersTimeout)))
}

func openReqlockShared(c Config) (Locker, error) {
	s, err := stack.On(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), c.Commands, core.WithCommandTimeout(manyLockersTimeout))
	if err != nil {
		return nil, err
	}
	return reqlockShared{reqlock{s}, s.Locks.With(core.WithShared(true))}, nil
}

// Lock implements Locker.
func (r reqlock) Lock(ctx context.Context, key string) (Held, error) {
	return lockWith(ctx, r.Locks, key)
}

func lockWith(ctx context.Context, locks *core.Locker, key string) (Held, error) {
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// A reqlockShared is a reqlock whose readers use a view.
type reqlockShared struct {
	reqlock
	readers *core.Locker
}

// Share implements Sharer.
func (r reqlockShared) Share(ctx context.Context, key string) (Held, error) {
	return lockWith(ctx, r.readers, key)
}

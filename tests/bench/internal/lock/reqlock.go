package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A reqlock is the lock of this project.
type reqlock struct {
	locks   *core.Locker
	clients []redis.UniversalClient
}

const (
	// replicaTime is how long a replica may take to acknowledge a lock, here and in the bare
	// commands: much longer than it takes.
	replicaTime = 200 * time.Millisecond
	// crowdTimeout bounds a command where up to a thousand Lockers send theirs at the same time. The bare commands have the timeouts of go-redis, which are longer.
	crowdTimeout = 2 * time.Second
	// closeTime is how long Close waits for the release of locks.
	closeTime = 2 * time.Second
)

func openReqlock(c Config) (Locker, error) {
	client := wire.NewClient(c.Addrs, c.Commands, wire.Deadlines)
	if c.IsCrowd {
		return reqlockOn(client, core.WithCommandTimeout(2*crowdTimeout))
	}
	return reqlockOn(client)
}

func openReqlockPlain(c Config) (Locker, error) {
	return reqlockOn(wire.NewClient(c.Addrs, c.Commands))
}

func openReqlockReplica(c Config) (Locker, error) {
	return reqlockOn(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines),
		core.WithReplicas(1, replicaTime), core.WithCommandTimeout(4*replicaTime))
}

func openReqlockPermits(c Config) (Locker, error) {
	return reqlockOn(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines),
		core.WithPermits(max(1, c.Permits)), core.WithCommandTimeout(crowdTimeout))
}

func openReqlockShared(c Config) (Locker, error) {
	writers, err := reqlockOn(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), core.WithCommandTimeout(crowdTimeout))
	if err != nil {
		return nil, err
	}
	return reqlockShared{writers, writers.locks.With(core.WithShared(true))}, nil
}

func openReqlockQuorum(c Config) (Locker, error) {
	clients := wire.NewClients(c.Addrs, c.Commands, wire.Deadlines)
	locks, err := core.NewQuorum(clients)
	if err != nil {
		return nil, errors.Join(err, wire.Close(clients))
	}
	return reqlock{locks, clients}, nil
}

func reqlockOn(client redis.UniversalClient, options ...core.Option) (reqlock, error) {
	locks, err := core.New(client, options...)
	if err != nil {
		return reqlock{}, errors.Join(err, client.Close())
	}
	return reqlock{locks, []redis.UniversalClient{client}}, nil
}

// Lock implements Locker.
func (r reqlock) Lock(ctx context.Context, key string) (Held, error) {
	return lockWith(ctx, r.locks, key)
}

func lockWith(ctx context.Context, locks *core.Locker, key string) (Held, error) {
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Close implements Locker.
func (r reqlock) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(r.locks.Close(ctx), wire.Close(r.clients))
}

// openReqlockReader returns a Locker whose locks are all shared.
func openReqlockReader(c Config) (Locker, error) {
	return reqlockOn(wire.NewClient(c.Addrs, c.Commands, wire.Deadlines), core.WithShared(true))
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

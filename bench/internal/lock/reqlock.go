package lock

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/bench/internal/stack"
	"github.com/reqlock/reqlock/bench/internal/wire"
)

// A reqlock is the lock of this project.
type reqlock struct{ *stack.Stack }

func openReqlock(c Config) (Locker, error)      { return reqlockOn(c, wire.Deadlines) }
func openReqlockPlain(c Config) (Locker, error) { return reqlockOn(c) }

func reqlockOn(c Config, configure ...func(*redis.UniversalOptions)) (Locker, error) {
	s, err := stack.On(wire.NewClient(c.Addrs, c.Commands, configure...), c.Commands)
	if err != nil {
		return nil, err
	}
	return reqlock{s}, nil
}

// Lock is that of Locker.
func (r reqlock) Lock(ctx context.Context, key string) (Held, error) {
	lease, err := r.Locks.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

package lock

import (
	"context"

	"github.com/reqlock/reqlock/bench/internal/stack"
)

// A reqlock is the lock of this project.
type reqlock struct{ *stack.Stack }

func openReqlock(c Config) (Locker, error) { return reqlockOn(stack.Open(c.Addr, c.Commands)) }

func openReqlockPlain(c Config) (Locker, error) {
	return reqlockOn(stack.OpenPlain(c.Addr, c.Commands))
}

func reqlockOn(s *stack.Stack, err error) (Locker, error) {
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

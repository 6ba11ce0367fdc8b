package lock

import (
	"context"
	"sync"
)

// A channelLock is a lock within one process: the optimum without Redis.
type channelLock struct {
	permits int
	keys    sync.Map // of channelHeld
}

func openChannel(c Config) (Locker, error) {
	return &channelLock{permits: max(1, c.Permits)}, nil
}

// Lock implements Locker.
func (c *channelLock) Lock(ctx context.Context, key string) (Held, error) {
	held := c.of(key)
	select {
	case held <- struct{}{}:
		return held, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// of returns the lock of a key.
func (c *channelLock) of(key string) channelHeld {
	held, ok := c.keys.Load(key)
	if !ok {
		held, _ = c.keys.LoadOrStore(key, make(channelHeld, c.permits))
	}
	return held.(channelHeld)
}

// Close implements Locker.
func (c *channelLock) Close() error { return nil }

// channelHeld is full while all permits are held.
type channelHeld chan struct{}

// Release implements Held.
func (h channelHeld) Release(context.Context) error {
	<-h
	return nil
}

package lock

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisTimeout is how long rueidislock gives a command. Its default, 20 ms,
// fails for no reason on a busy machine.
const rueidisTimeout = 500 * time.Millisecond

// A rueidisLock is github.com/redis/rueidis/rueidislock on one key.
type rueidisLock struct{ locks rueidislock.Locker }

func openRueidislock(c Config) (Locker, error)       { return openRueidis(c, false) }
func openRueidislockNoLoop(c Config) (Locker, error) { return openRueidis(c, true) }

func openRueidis(c Config, noLoop bool) (Locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			// It asks one node of a cluster for the others. Told all of them, it
			// dials some twice, and closes what is too much while others lock.
			InitAddress: c.Addrs[:1],
			DialCtxFn: func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return c.Commands.Dial(ctx, dialer, addr)
			},
		},
		KeyMajority:    1,
		KeyValidity:    TTL,
		TryNextAfter:   rueidisTimeout,
		NoLoopTracking: noLoop,
	})
	if err != nil {
		return nil, err
	}
	return rueidisLock{locks}, nil
}

// Lock is that of Locker.
func (r rueidisLock) Lock(ctx context.Context, key string) (Held, error) {
	_, cancel, err := r.locks.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return rueidisHeld(cancel), nil
}

// Close is that of Locker.
func (r rueidisLock) Close() error {
	r.locks.Close()
	return nil
}

// rueidisHeld releases a lock: it returns when Redis has answered.
type rueidisHeld context.CancelFunc

// Release is that of Held.
func (release rueidisHeld) Release(context.Context) error {
	release()
	return nil
}

package lock

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisTimeout is the command timeout of rueidislock. Its default of 20 ms fails on a
// busy machine.
const rueidisTimeout = 500 * time.Millisecond

// A rueidisLock is github.com/redis/rueidis/rueidislock on one key.
type rueidisLock struct{ locks rueidislock.Locker }

func openRueidislock(c Config) (Locker, error)       { return openRueidis(c, false) }
func openRueidislockNoLoop(c Config) (Locker, error) { return openRueidis(c, true) }

func openRueidis(c Config, noLoop bool) (Locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			// It reads the other nodes of a cluster from one of them. With all addresses it
			// dials some nodes twice, and closes the extra connections while other
			// goroutines lock.
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

// Lock implements Locker.
func (r rueidisLock) Lock(ctx context.Context, key string) (Held, error) {
	_, cancel, err := r.locks.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return rueidisHeld(cancel), nil
}

// Close implements Locker.
func (r rueidisLock) Close() error {
	r.locks.Close()
	return nil
}

// A rueidisHeld releases a lock, and returns when Redis has replied.
type rueidisHeld context.CancelFunc

// Release implements Held.
func (release rueidisHeld) Release(context.Context) error {
	release()
	return nil
}

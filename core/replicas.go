package core

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// WithReplicas makes a lock count only once n replicas of its master have it: a
// grant, a renewal, the turn of a waiter, and the end of an idempotent request,
// Commit and Seal. They have the timeout for it, whole milliseconds; where fewer of
// them have said so by then, the request gets ErrUnavailable, and no lock is left
// behind. It is off if not set. n is at least 1, and the timeout at least 1 ms, at
// most a quarter of WithCommandTimeout, and at most a sixteenth of the TTL: 125 ms if
// these are not set. A command may have to wait for replicas three times: behind
// another one, for a server that has to be told the script, and for its own. Redis may
// take up to 100 ms longer each time to say that they are too few; what does not fit
// into the command timeout then gets the same error with another text. Only New takes it.
//
// A lock that n replicas have survives the loss of its master, if one of these is
// the next one. Redis promotes the replica that has the most, as far as that is
// known when it chooses; n as high as the number of replicas leaves no other. This
// is no consensus: what must not happen twice needs a fencing number, or the key, in
// the system where it happens.
//
// Each of these steps takes a round trip between master and replicas longer; those
// that come together share one, by WAIT on their connection. The time counts
// against the lease. Releases, and what is given up, do not wait for replicas: a
// release that is lost costs the rest of the TTL, and an Abort that is lost leaves the
// record of an attempt that died, so that later requests with its key get
// ErrInterrupted, or run by Rerun, for the time of WithRetention.
//
// While replicas are away, waiters wait on, a held lock is lost at the end of its
// validity, and a Commit is tried for two seconds. A Commit that fails for this is in
// Redis all the same, and is replayed unless that loses it. The first of those who
// wait then has the key without replicas, and asks for them again and again until its
// wait is over. To others it is before them in line: in other processes who does not
// wait gets ErrBusy, and who waits may get ErrWaitTimeout, although nobody was granted
// the lock. Too few replicas are ErrUnavailable, so WithFailOpen runs without the lock.
//
// It takes the right +wait; connections of the client, up to four for each master
// under load; and a client that shows what it is: New refuses a wrapper that embeds
// none of go-redis, and a ReadTimeout too short for the timeout. On a cluster these
// commands go to the masters past the client's own hooks, though not past those that
// its NewClient or OnNewNode adds. Check says whether the replicas are there.
func WithReplicas(n int, timeout time.Duration) Option {
	return rootOption{"WithReplicas", func(r *root) error {
		switch {
		case n < 1:
			return fmt.Errorf("reqlock: WithReplicas: %d is below 1", n)
		case timeout < time.Millisecond:
			return fmt.Errorf("reqlock: WithReplicas: a timeout of %v is below 1ms", timeout)
		}
		r.replicas = redisstore.Replicas{Count: n, Timeout: timeout}
		return nil
	}}
}

// replicaShare is how many times longer than replicas a command may take: it may wait
// for them three times.
const replicaShare = 4

// checkReplicas refuses times into which a wait for replicas does not fit.
func (s *settings) checkReplicas() error {
	wait := s.replicas.Timeout
	switch {
	case s.replicas.Count == 0:
		return nil
	case wait > s.commandTimeout/replicaShare:
		return fmt.Errorf("reqlock: WithReplicas: a timeout of %v is more than a quarter of WithCommandTimeout, which is %v", wait, s.commandTimeout)
	case wait > s.ttl/4/replicaShare:
		return fmt.Errorf("reqlock: WithReplicas: a timeout of %v takes a TTL of at least %v, and WithTTL is %v: "+
			"a command has a quarter of that, and the replicas a quarter of the command", wait, 4*replicaShare*wait, s.ttl)
	default:
		return nil
	}
}

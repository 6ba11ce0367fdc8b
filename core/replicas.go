package core

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// WithReplicas makes each grant and each renewal wait until n replicas of the master have
// acknowledged it: off if not set. The turn of a waiter waits for replicas as well, and so
// does the end of an idempotent request by Commit or Done. If fewer replicas acknowledge a
// step within the timeout, the request gets ErrUnavailable and holds no lock. The timeout is
// in whole milliseconds. Only New accepts this option.
//
// n is at least 1. The timeout is at least 1 ms, at most a quarter of WithCommandTimeout, and
// at most a sixteenth of the TTL: 125 ms if these are not set. A command may wait for
// replicas three times: behind another command, after the server had to load the script, and
// for its own acknowledgements. Each time, Redis may take up to 100 ms longer to report too
// few replicas. If that exceeds the command timeout, the error is the same with another text.
//
// A lock on n replicas survives the loss of its master if one of these replicas is promoted.
// The Sentinels, or the masters of a cluster, promote the replica with the most data that they
// have a report of. If n is the number of all replicas, each choice is safe. This is not
// consensus: if an action must never happen twice, the system where it happens must check a
// fencing number or the key.
//
// Each of these steps takes one more round trip between master and replicas. Steps that leave
// together share one WAIT on their connection. The time counts against the lease. Releases
// and withdrawn requests do not wait for replicas. If a failover loses a release, the key
// stays locked for the rest of its TTL. If a failover loses an Abort, the attempt counts as
// dead: later requests with its key get ErrOutcomeUnknown, or run by WithRerunUnknown, for the time of
// WithRetention. Exception: the process of the Abort finds the key before its TTL ends, within a
// minute, and aborts the attempt again.
//
// While replicas are away, waiters keep waiting, a held lock is lost at the end of its
// validity, and a Commit is retried for two seconds. A Commit that fails for this reason is
// stored in Redis and is replayed, unless Redis loses it. The first waiter takes the key
// without replicas, and retries until its wait is over. Other callers find the key locked,
// although no caller was granted the lock: in other processes, a caller that does not wait
// gets ErrBusy, and a caller that waits may get ErrWaitTimeout. Too few replicas are
// ErrUnavailable, so WithFailOpen runs without the lock.
//
// WithReplicas needs the right +wait, and under load up to four connections of the client for
// each master. New refuses a client that wraps and does not embed a go-redis client, and a
// ReadTimeout that is too short for the timeout. On a cluster these commands bypass the
// client's own hooks, but not hooks that its NewClient or OnNewNode adds. Check reports
// whether the replicas are connected.
func WithReplicas(n int, timeout time.Duration) Option {
	return rootOption{"WithReplicas", "New", func(r *root) error {
		switch {
		case n < 1:
			return fmt.Errorf("reqlock: WithReplicas: %d is below 1", n)
		case 0 < timeout && timeout < time.Millisecond:
			return checkUnit("WithReplicas", timeout, 0)
		case timeout < time.Millisecond:
			return fmt.Errorf("reqlock: WithReplicas: a timeout of %v is below 1ms", timeout)
		}
		r.replicas = redisstore.Replicas{Count: n, Timeout: timeout}
		return nil
	}}
}

// replicaShare is how many times longer than the replica timeout a command timeout must be:
// a command may wait for replicas three times.
const replicaShare = 4

// checkReplicas refuses a command timeout or a TTL that is too short for the replica timeout.
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

package engine

import "sync"

// maxRenewals is how many renewals the schedule has in flight at a time: enough to keep
// the store busy. Many leases that were granted together are due together. If all
// renewals were sent at once, the last ones would exceed their bound behind the others.
// Here they wait, and the rest of their validity is long enough for that.
const maxRenewals = 256

// A renewalLimiter counts the renewals in flight, and keeps a queue of the leases that
// wait for one. Its mutex is locked after a shard's mutex.
type renewalLimiter struct {
	mu       sync.Mutex
	inFlight int
	waiting  []*lease
}

// enter reports whether the lease may be renewed now. If not, it adds the lease to the
// queue.
func (r *renewalLimiter) enter(l *lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight < maxRenewals {
		r.inFlight++
		return true
	}
	r.waiting = append(r.waiting, l)
	return false
}

// next ends a renewal, or drops a lease that does not need one any more. It returns the
// next lease of the queue, or nil.
func (r *renewalLimiter) next() *lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.inFlight--
		r.waiting = nil
		return nil
	}
	l := r.waiting[0]
	r.waiting[0] = nil
	r.waiting = r.waiting[1:]
	return l
}

package engine

import (
	"sync"
)

// mostRenewals is how many renewals the schedule has under way at a time: enough
// to keep the store busy. Many leases that were taken together are due together.
// If all were sent at once, the last ones would spend their bound behind the
// others; here they wait, and have the rest of their lives to do so.
const maxRenewals = 256

// A pace counts the renewals under way, and knows who comes next. Its mutex is
// taken inside those of the shards.
type renewalLimiter struct {
	mu       sync.Mutex
	inFlight int
	waiting  []*lease
}

// enter reports whether the lease may be renewed now. Otherwise it stands in
// line for it.
func (p *renewalLimiter) enter(l *lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight < maxRenewals {
		p.inFlight++
		return true
	}
	p.waiting = append(p.waiting, l)
	return false
}

// next ends a renewal, or the turn of a lease that has no need of it any more. It
// returns the lease whose turn it is, or nil.
func (p *renewalLimiter) next() *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.inFlight--
		p.waiting = nil
		return nil
	}
	l := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return l
}

package engine

import (
	"sync"
	"time"
)

// mostRenewals is how many renewals the schedule has under way at a time: enough
// to keep the store busy. Many leases that were taken together are due together.
// If all were sent at once, the last ones would spend their bound behind the
// others; here they wait, and have the rest of their lives to do so.
const mostRenewals = 256

// A pace counts the renewals under way, and knows who comes next. Its mutex is
// taken inside those of the shards.
type pace struct {
	mu      sync.Mutex
	flying  int
	waiting []*lease
}

// enter reports whether the lease may be renewed now. Otherwise it stands in
// line for it.
func (p *pace) enter(l *lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flying < mostRenewals {
		p.flying++
		return true
	}
	p.waiting = append(p.waiting, l)
	return false
}

// next ends a renewal, or the turn of a lease that has no need of it any more. It
// returns the lease whose turn it is, or nil.
func (p *pace) next() *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.flying--
		p.waiting = nil
		return nil
	}
	l := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return l
}

// renewNext gives the place of a renewal that has ended to the next lease that
// still wants one.
func (e *Engine) renewNext() {
	for lease := e.pace.next(); lease != nil; lease = e.pace.next() {
		l := lease.line
		l.shard.mu.Lock()
		h := lease.holder
		wants := lease.awaits && l.lease == lease && h != nil && h.request.Renew && h.loss == NotLost
		lease.awaits = false
		if wants {
			lease.renewAt = time.Time{}
			e.schedule.set(lease)
			e.renewFor(lease, e.renewNext)
		}
		l.shard.mu.Unlock()
		if wants {
			return
		}
	}
}

// renewFor renews a held lease for its holder.
func (e *Engine) renewFor(lease *lease, landed func()) {
	h := lease.holder
	lease.inFlight++
	fences := lease.fences.wanted(h.request, lease.line.callers)
	e.renew(lease, h, h.request.TTL, fences, landed, func(bool, error) {})
}

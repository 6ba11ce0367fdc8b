package validate

import "slices"

// A simulatedLock is the state of a key, and of a request, on the server.
type simulatedLock struct {
	out     map[string]simulatedHolder // by lease
	queue   []simulatedWaiter
	fence   int64
	version map[bool]int64 // of the registers
	seen    int64          // the highest fencing number that the register saw

	record string // the lease of the attempt; "" without one
	number int
	done   bool
	answer string
}

// A simulatedHolder is a lease that is out.
type simulatedHolder struct {
	limit   int
	expires int64
	fence   int64
}

// A simulatedWaiter is a lease in the queue.
type simulatedWaiter struct {
	lease  string
	limit  int
	joined int64
	asked  int64 // when it asked last
}

// deadAfter is how long a waiter may not ask before it leaves the queue.
const deadAfter = 60 * ms

// recheckInterval is how long a waiter waits if no release serves it.
const recheckInterval = 1000 * ms

// take grants a lock to a lease if it is free for it. A lease that waits joins the queue, and
// is granted the lock in its turn.
func (w *simulation) take(l *simulatedLock, lease string, limit int, waits bool) bool {
	w.admit(l)
	if one, held := l.out[lease]; held {
		one.expires = w.now + ttl*ms
		l.out[lease] = one
		return true
	}
	at := slices.IndexFunc(l.queue, func(one simulatedWaiter) bool { return one.lease == lease })
	if at >= 0 {
		l.queue[at].asked = w.now
	}
	passes := len(l.queue) == 0 || limit != 0 && w.flaw == passesQueue
	if passes && w.hasRoom(l, limit) {
		w.grant(l, lease, limit)
		if at >= 0 {
			l.queue = slices.Delete(l.queue, at, at+1)
		}
		return true
	}
	if waits && at < 0 {
		l.queue = append(l.queue, simulatedWaiter{lease, limit, w.now, w.now})
	}
	return false
}

// hasRoom reports whether a lease may be granted beside those that are out.
func (w *simulation) hasRoom(l *simulatedLock, limit int) bool {
	exclusive := false
	for _, one := range l.out {
		exclusive = exclusive || one.limit == 0
	}
	switch {
	case w.flaw == secondHolder && w.chance(2):
		return true
	case limit > 0 && w.flaw == ignoresLimit && w.chance(10):
		return !exclusive
	case limit != 0 && w.flaw == joinsWriter && w.chance(20):
		return true
	case exclusive:
		return false
	case limit < 0:
		return true
	}
	return len(l.out) < max(limit, 1)
}

// grant grants a lock to a lease. Shared leases that overlap have one fencing number. Permits
// have none.
func (w *simulation) grant(l *simulatedLock, lease string, limit int) {
	if limit <= 0 && (limit == 0 || len(l.out) == 0) {
		l.fence = max(l.fence+1, w.now)
	}
	if w.flaw == sameFence {
		l.fence = 1
	}
	one := simulatedHolder{limit: limit, expires: w.now + ttl*ms}
	if limit <= 0 {
		one.fence = l.fence
	}
	l.out[lease] = one
}

// admit removes what has expired, and grants the lock to the waiters whose turn it is.
func (w *simulation) admit(l *simulatedLock) {
	for lease, one := range l.out {
		if one.expires <= w.now {
			delete(l.out, lease)
		}
	}
	l.queue = slices.DeleteFunc(l.queue, func(one simulatedWaiter) bool { return one.asked < w.now-deadAfter })
	for len(l.queue) > 0 && w.hasRoom(l, l.queue[0].limit) {
		if w.flaw == strandsQueue && l.queue[0].joined > w.now-recheckInterval {
			return
		}
		w.grant(l, l.queue[0].lease, l.queue[0].limit)
		l.queue = l.queue[1:]
	}
}

// holds reports whether a lease is out.
func (w *simulation) holds(l *simulatedLock, lease string) bool {
	one, held := l.out[lease]
	return held && one.expires > w.now
}

// free ends a lease.
func (w *simulation) free(l *simulatedLock, lease string) {
	if w.flaw == releasesAny {
		clear(l.out)
	}
	delete(l.out, lease)
	w.admit(l)
}

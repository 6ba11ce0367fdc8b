package load

import "sync"

// An account counts the handlers that ran for it, in two ways: one is protected by the lock
// alone, and one also checks fencing numbers. A handler reads both counts, and writes them
// later.
type account struct {
	mu         sync.Mutex
	inside     int
	overlaps   int           // how often a handler ran beside another one
	overlapped chan struct{} // closed at the first overlap
	entered    bool

	plain, plainRuns   int
	fenced, fencedRuns int
	highest            int64 // highest fencing number
	refused            int
	notified           int // handlers that were notified of a lost lock in time
}

// enter reads both counts, and reports whether this is the first handler.
func (a *account) enter(fence int64) (plain, fenced int, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inside > 0 {
		if a.overlaps++; a.overlaps == 1 {
			close(a.overlapped)
		}
	}
	a.inside++
	a.highest = max(a.highest, fence)
	first, a.entered = !a.entered, true
	return a.plain, a.fenced, first
}

// leave writes both counts if the handler still relies on its lock.
func (a *account) leave(plain, fenced int, fence int64, relies bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
	if !relies {
		a.notified++
		return
	}
	a.plain = plain
	a.plainRuns++
	if fence < a.highest {
		a.refused++
		return
	}
	a.fenced = fenced
	a.fencedRuns++
}

// A total is the sum over all accounts.
type total struct {
	runs, overlaps, lost, fencedLost, refused, notified int
}

func (t *total) add(a *account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.runs += a.plainRuns
	t.overlaps += a.overlaps
	t.lost += a.plainRuns - a.plain
	t.fencedLost += a.fencedRuns - a.fenced
	t.refused += a.refused
	t.notified += a.notified
}

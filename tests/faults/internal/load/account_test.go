package load

import "sync"

// An account counts the handlers that ran for it, twice: by what the lock alone
// protects, and by what also looks at fencing numbers. Each count is read, and
// written a little later.
type account struct {
	mu         sync.Mutex
	inside     int
	overlaps   int           // how often one was inside with another
	overlapped chan struct{} // closed at the first meeting
	entered    bool

	plain, plainRuns   int
	fenced, fencedRuns int
	highest            int64 // fence
	refused            int
	notified           int // handlers that were told in time that they had lost their lock
}

// enter reads both counts, and reports whether this is the first time.
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

// leave writes them, where the handler still relies on its lock.
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

// A total is what became of all accounts.
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

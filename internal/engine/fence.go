package engine

import "github.com/reqlock/reqlock/internal/store"

// maxFences is how many fencing numbers are reserved at a time at most: one for each
// holder of a lease during one turn of this process, so that one turn needs one
// reservation.
const maxFences = 1 + maxPasses

// fences are the fencing numbers that are reserved for a key and not used yet: next up
// to, but not including, end. Numbers rise from holder to holder and from reservation
// to reservation. Numbers that are left over are never used. Exception: shared leases that
// are out at the same time have one number, which stays with the lease for all its holders.
type fences struct{ next, end int64 }

// newFences returns count numbers, beginning with first.
func newFences(first int64, count int) fences { return fences{first, first + int64(count)} }

// add replaces the numbers by the numbers of a later reservation. It changes nothing if the
// reply to a later renewal has arrived before.
func (f *fences) add(first int64, count int) {
	if end := first + int64(count); end > f.end {
		*f = fences{max(first, f.end), end}
	}
}

// draw returns the next number. It removes the number, unless that belongs to a shared
// lease.
func (f *fences) draw(limit store.Limit) int64 {
	next := f.next
	if !limit.IsShared() {
		f.next++
	}
	return next
}

// needsNewFence reports whether the request needs a fencing number above that of the holder
// before it, and a shared lease has only the one of its phase.
func (r *Request) needsNewFence() bool { return r.Fencing && r.Limit == 1 }

// empty reports whether no number is left.
func (f *fences) empty() bool { return f.next >= f.end }

// toReserve returns how many numbers a renewal for the request reserves for this many
// waiting callers: none if no caller waits, and none while more than half of a turn's
// numbers are left. Callers mostly come back for the lock, so even one caller gets
// enough numbers for a whole turn. The store reserves fewer if the numbers would run
// ahead of its clock. A shared lease needs one number.
func (f *fences) toReserve(r Request, callers int) int {
	if r.Limit.IsShared() && r.Fencing && f.empty() {
		return 1
	}
	if !r.Fencing || r.Limit.IsShared() || callers == 0 || f.end-f.next > maxFences/2 {
		return 0
	}
	return maxFences
}

// firstReservation returns how many numbers a request for the key reserves for this
// many callers. A single caller needs one, and so does a shared lease.
func firstReservation(limit store.Limit, callers int) int {
	if callers > 1 && !limit.IsShared() {
		return maxFences
	}
	return min(callers, 1)
}

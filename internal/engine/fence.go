package engine

// maxFences is how many fencing numbers are reserved at once at most: one for
// each holder that a lease has in a turn while others wait, so that a turn asks
// for numbers once.
const maxFences = 1 + maxPasses

// fences are the fencing numbers that are reserved for a key and not used yet,
// from next up to end, without end. Numbers rise from holder to holder and from
// reservation to reservation. Those that are left over are never used.
type fences struct{ next, end int64 }

// newFences returns count numbers from first on.
func newFences(first int64, count int) fences { return fences{first, first + int64(count)} }

// add takes in a reservation, and drops the numbers of the one before. It changes
// nothing where the reply was overtaken by the reply to a later renewal.
func (f *fences) add(first int64, count int) {
	if end := first + int64(count); end > f.end {
		*f = fences{max(first, f.end), end}
	}
}

// draw takes the next number.
func (f *fences) draw() int64 {
	f.next++
	return f.next - 1
}

// empty reports whether no number is left.
func (f *fences) empty() bool { return f.next >= f.end }

// wanted returns how many numbers a renewal for the request has to reserve, where so
// many callers wait for the lease: none for nobody, and none while more than half of a
// turn's are left. Callers mostly come back for the lock, so even one gets enough
// numbers for a whole turn. The store reserves fewer where the numbers would run ahead
// of its clock.
func (f *fences) toReserve(r Request, callers int) int {
	if !r.Fencing || callers == 0 || f.end-f.next > maxFences/2 {
		return 0
	}
	return maxFences
}

// fencesFor returns how many numbers a question reserves for so many callers. A caller
// who is alone needs one.
func firstReservation(callers int) int {
	if callers > 1 {
		return maxFences
	}
	return callers
}

package engine

// fenceBlock is how many fencing numbers are reserved at once: one for each
// holder that a lease has in a turn while others wait, so that a turn asks for
// numbers once.
const fenceBlock = 1 + maxPasses

// fences is a block of fencing numbers that was reserved for a key. They rise
// from holder to holder, and from block to block; those that are left over are
// never used.
type fences struct{ next, end int64 }

// newFences returns the block that begins with first; none if that is 0.
func newFences(first int64) fences {
	if first == 0 {
		return fences{}
	}
	return fences{first, first + fenceBlock}
}

// draw takes the next number of the block.
func (f *fences) draw() int64 {
	f.next++
	return f.next - 1
}

// empty reports whether no number is left.
func (f *fences) empty() bool { return f.next >= f.end }

// wanted returns how many numbers a command for the request has to reserve,
// where the lease has left what it has.
func (f *fences) wanted(r Request) int {
	if r.Fencing && f.end-f.next <= fenceBlock/2 {
		return fenceBlock
	}
	return 0
}

package shared

// Enter is called by a holder right after it got the lock, with a number that
// no other goroutine of the run has, above 0. handoff is true if another was
// inside before.
func (m *Memory) Enter(who int64) (handoff bool) {
	if !m.holder.CompareAndSwap(0, who) {
		m.violations.Add(1)
	}
	return m.last.Swap(who) != who
}

// Leave is called by a holder right before it gives the lock back.
func (m *Memory) Leave(who int64) {
	m.turns.Store(m.turns.Load() + 1) // in two steps, on purpose
	if !m.holder.CompareAndSwap(who, 0) {
		m.violations.Add(1)
	}
}

// Violations returns how often two were inside at once: as holders have seen
// it, and as turns that are missing of those that were taken.
func (m *Memory) Violations(taken int64) int64 {
	return m.violations.Load() + max(0, taken-m.turns.Load())
}

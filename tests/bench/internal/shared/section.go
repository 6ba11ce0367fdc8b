package shared

// Enter is called by a holder after it got the lock, with a number above 0 that is unique
// in the run. handoff is true if another goroutine was the previous holder.
func (m *Memory) Enter(who int64) (handoff bool) {
	if !m.holder.CompareAndSwap(0, who) || m.sharers.Load() > 0 {
		m.violations.Add(1)
	}
	return m.last.Swap(who) != who
}

// Leave is called by a holder before it releases the lock.
func (m *Memory) Leave(who int64) {
	m.turns.Store(m.turns.Load() + 1) // in two steps, on purpose
	if !m.holder.CompareAndSwap(who, 0) {
		m.violations.Add(1)
	}
}

// EnterShared is Enter for a lock that at most that many may hold at a time.
func (m *Memory) EnterShared(who int64, limit int) (handoff bool) {
	if m.sharers.Add(1) > int64(limit) || m.holder.Load() != 0 {
		m.violations.Add(1)
	}
	return m.last.Swap(who) != who
}

// LeaveShared is Leave for such a lock.
func (m *Memory) LeaveShared() {
	m.turns.Add(1)
	m.sharers.Add(-1)
}

// Violations returns how often too many goroutines held the lock at a time: as seen by
// holders, and as missing turns.
func (m *Memory) Violations(taken int64) int64 {
	return m.violations.Load() + max(0, taken-m.turns.Load())
}

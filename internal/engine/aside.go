package engine

// Aside runs f on a goroutine that Close waits for. It returns false, and does
// not run it, where Close has begun.
func (e *Engine) Aside(f func()) bool {
	if !e.begin() {
		return false
	}
	go func() {
		defer e.work.Done()
		f()
	}()
	return true
}

// begin counts a piece of work, unless Close has begun. It looks twice. The second
// look, after the count, makes a Close that begins in between wait for the work.
// The first look keeps callers of a closed engine from the count: Close waits
// until the count is zero, and with many callers in a loop it never would be.
func (e *Engine) begin() bool {
	if e.isClosing() {
		return false
	}
	e.work.Add()
	if e.isClosing() {
		e.work.Done()
		return false
	}
	return true
}

// isClosing reports whether Close has begun.
func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

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

// begin counts a piece of work, unless Close has begun. It counts first and looks
// then: a Close that begins in between waits for it.
func (e *Engine) begin() bool {
	e.work.Add()
	select {
	case <-e.closing:
		e.work.Done()
		return false
	default:
		return true
	}
}

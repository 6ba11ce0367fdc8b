package engine

// Aside runs f on a goroutine that Close waits for. It returns false, and does
// not run it, where Close has begun.
func (e *Engine) Aside(f func()) bool {
	select {
	case <-e.closing:
		return false
	default:
		e.spawn(f)
		return true
	}
}

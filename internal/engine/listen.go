package engine

// listen makes the line one that hears hints, if it is not yet. It does so from
// when somebody has to wait until the line comes to rest.
func (l *line) listen() {
	if l.stop == nil {
		l.ready, l.stop = l.engine.store.Listen(l.key)
	}
}

// unlisten ends it.
func (l *line) unlisten() {
	if l.stop != nil {
		l.stop()
		l.ready, l.stop = nil, nil
	}
}

// hears reports whether the server knows that this process listens.
func (l *line) hears() bool {
	select {
	case <-l.ready: // nil where it does not listen: never
		return true
	default:
		return false
	}
}

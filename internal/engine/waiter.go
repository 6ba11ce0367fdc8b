package engine

import "time"

// A waiter is a caller that stands in a line.
type waiter struct {
	hold *Hold
	line *line // nil once it has left or is settled

	prev, next *waiter

	// try is true for a caller that may not wait: it stands in line only until
	// the store has answered once.
	try bool
	// patience is how long it stands in line; 0 and less is without end.
	patience time.Duration
	// queued is true once it is known that the caller has to wait.
	queued bool
	// news brings a value when it turns out later that the caller has to wait,
	// and is closed when the waiter is settled: granted the lease, or refused. It
	// is nil while the waiter puts its question itself.
	news    chan struct{}
	refusal *Refusal // set before news is closed; nil if granted
}

// join puts the waiter at the end of the line.
func (l *line) join(w *waiter) {
	w.line = l
	w.prev = l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.callers++
	if w.try {
		l.tries++
	}
}

// unlink takes the waiter out of the line.
func (l *line) unlink(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.line, w.prev, w.next = nil, nil, nil
	l.callers--
	if w.try {
		l.tries--
	}
	l.dequeue(w)
}

// refuse settles the waiter with a refusal.
func (l *line) refuse(w *waiter, refusal *Refusal) {
	l.unlink(w)
	w.refusal = refusal
	w.settle()
}

// settle tells the waiter that it is settled.
func (w *waiter) settle() {
	if w.news != nil {
		close(w.news)
	}
}

// refuseAll refuses everybody who waits.
func (l *line) refuseAll(refusal *Refusal) {
	l.refuseIf(func(*waiter) *Refusal { return refusal })
}

// refuseTries refuses those who may not wait.
func (l *line) refuseTries(refusal *Refusal) {
	if l.tries == 0 {
		return
	}
	l.refuseIf(func(w *waiter) *Refusal {
		if w.try {
			return refusal
		}
		return nil
	})
}

// refuseIf refuses those for whom reason returns a refusal.
func (l *line) refuseIf(reason func(*waiter) *Refusal) {
	for w := l.first; w != nil; {
		next := w.next
		if refusal := reason(w); refusal != nil {
			l.refuse(w, refusal)
		}
		w = next
	}
}

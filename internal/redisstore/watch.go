package redisstore

import "time"

// watch sees to it that the lane looks at its exchanges at a time, or before.
// One timer serves all of them. It is not stopped when they end in time: it
// fires once and finds nothing to do.
func (l *lane) watch(at time.Time) {
	switch {
	case l.timer == nil:
		l.due = at
		l.timer = time.AfterFunc(time.Until(at), l.look)
	case l.due.IsZero() || at.Before(l.due):
		l.due = at
		l.timer.Reset(time.Until(at))
	}
}

// look sends those commands again that have waited for half of their bound, on
// a goroutine of their own, and gives up those whose bound is over.
func (l *lane) look() {
	var over []notice
	l.mu.Lock()
	l.due = time.Time{}
	now := time.Now()
	for i := 0; i < len(l.exchanges); {
		x := l.exchanges[i]
		if !now.Before(x.deadline) {
			over = append(over, x.end(reply{err: errNoReply}))
			l.forget(x) // another one takes its place
			continue
		}
		switch {
		case x.overdue:
			l.watch(x.deadline)
		case now.Before(x.resendAt):
			l.watch(x.resendAt)
		default:
			x.overdue = true
			l.leave(x)
			l.watch(x.deadline)
		}
		i++
	}
	l.start()
	l.mu.Unlock()
	for i := range over {
		over[i].tell()
	}
}

// leave leaves the batch behind that keeps the exchange waiting, whether it is
// in it or behind it, and sends again what was sent.
func (l *lane) leave(x *exchange) {
	if x.sends < 2 && !x.queued {
		l.queue = append(l.queue, x.send())
	}
	if l.flight != nil {
		l.flight.left = true
		l.flight = nil
	}
}

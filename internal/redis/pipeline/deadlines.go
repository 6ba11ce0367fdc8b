package pipeline

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// glance is the shortest time between two looks, so that many commands that are
// due one after the other do not make as many looks.
const glance = time.Millisecond

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

// look leaves a batch behind that has kept a command waiting for half of its
// bound, and gives up those commands whose bound is over.
func (l *lane) look() {
	var over []completion
	l.mu.Lock()
	l.due = time.Time{}
	now := time.Now()
	soon := now.Add(glance)
	for i := 0; i < len(l.exchanges); {
		x := l.exchanges[i]
		if !now.Before(x.deadline) {
			over = append(over, x.end(Reply{Err: command.ErrNoReply}))
			l.letGo(x)
			l.forget(x) // another one takes its place
			continue
		}
		if next := l.judge(x, now); next.Before(soon) {
			l.watch(soon)
		} else {
			l.watch(next)
		}
		i++
	}
	l.start()
	l.mu.Unlock()
	for i := range over {
		over[i].deliver()
	}
}

// judge leaves the batch in flight behind if it has kept the exchange waiting
// for too long, and returns when to look at the exchange again. A batch that is
// younger than that is given its time: what the exchange waited for before was
// another one.
func (l *lane) judge(x *Call, now time.Time) time.Time {
	if x.led != nil {
		if now.Before(x.ledUntil) {
			return x.ledUntil
		}
		l.letGo(x)
	}
	switch {
	case x.overdue:
		return x.deadline
	case l.flight == nil: // the next batch is about to leave
		return x.postpone(now.Add(x.half))
	case now.Before(x.resendAt):
		return x.resendAt
	}
	if since := now.Sub(l.flight.begun); since < x.half {
		return x.postpone(now.Add(x.half - since))
	}
	x.overdue = true
	l.leave(l.flight)
	return x.deadline
}

// postpone puts off when the exchange is sent again, and returns when to look at
// it: then, or at its end.
func (c *callState) postpone(at time.Time) time.Time {
	c.resendAt = at
	if at.After(c.deadline) {
		return c.deadline
	}
	return at
}

// leave leaves a batch behind, if it is in flight, and sends again what it has
// sent.
func (l *lane) leave(b *batch) {
	if l.flight != b {
		return
	}
	for _, s := range b.sends {
		x := s.of
		if !x.settled && !x.queued && x.sends < 2 {
			l.queue = append(l.queue, x.send())
		}
		x.overdue = true
	}
	b.left = true
	l.flight = nil
	l.routes.doubt()
}

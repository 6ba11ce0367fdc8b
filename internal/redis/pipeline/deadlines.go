package pipeline

import (
	"time"
)

// minTimerGap is the shortest time between two checks of the deadlines, so that many
// calls with deadlines close together do not cause as many checks.
const minTimerGap = time.Millisecond

// armTimer makes the lane check its deadlines at a time, or before. One timer serves all
// calls. It is not stopped when they end in time: it fires once and finds nothing to do.
func (l *lane) armTimer(at time.Time) {
	switch {
	case l.timer == nil:
		l.timerAt = at
		l.timer = time.AfterFunc(time.Until(at), l.checkDeadlines)
	case l.timerAt.IsZero() || at.Before(l.timerAt):
		l.timerAt = at
		l.timer.Reset(time.Until(at))
	}
}

// checkDeadlines abandons the batch in flight if it has kept a call waiting for too long,
// and fails the calls past their deadlines. It looks at the calls that are due.
func (l *lane) checkDeadlines() {
	var expired []completion
	l.mu.Lock()
	l.timerAt = time.Time{}
	now := time.Now()
	soon := now.Add(minTimerGap)
	for c := l.calls.due(now); c != nil; c = l.calls.due(now) {
		if now.Before(c.deadline) {
			l.calls.put(c, latest(soon, l.nextDeadline(c, now)))
			continue
		}
		err := l.health.noReply(c.failure)
		l.health.failed(c.Begun, err, c.Key)
		expired = append(expired, c.settle(Reply{Err: err}))
		l.noteSettled(c, Reply{Err: err})
		l.detach(c)
		l.calls.remove(c)
	}
	if len(l.calls) > 0 {
		l.armTimer(latest(soon, l.calls[0].at))
	}
	l.start()
	l.mu.Unlock()
	for i := range expired {
		expired[i].deliver()
	}
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstCheck returns when to check a call that was just sent.
func (s *callState) firstCheck() time.Time {
	if s.inline != nil {
		return s.inlineUntil // before resendAt: see mayRunInline
	}
	return s.resendAt
}

// nextDeadline abandons the batch in flight if it has kept the call waiting for
// resendAfter, and returns when to check the call again. It does not abandon a younger
// batch: the call has waited for an earlier one.
func (l *lane) nextDeadline(c *Call, now time.Time) time.Time {
	if c.inline != nil {
		if now.Before(c.inlineUntil) {
			return c.inlineUntil
		}
		l.detach(c)
	}
	switch {
	case c.overdue:
		return c.deadline
	case l.inFlight == nil: // the next batch begins now, or after a congestionPause
		return c.orDeadline(now.Add(c.resendAfter))
	case now.Before(c.resendAt):
		return c.resendAt
	}
	if since := now.Sub(l.inFlight.begun); since < c.resendAfter {
		return c.orDeadline(now.Add(c.resendAfter - since))
	}
	l.abandon(l.inFlight)
	return c.deadline
}

// orDeadline returns the time, or the deadline if that is earlier.
func (s *callState) orDeadline(at time.Time) time.Time {
	if at.After(s.deadline) {
		return s.deadline
	}
	return at
}

// abandon stops waiting for a batch if it is in flight, and queues its unanswered calls
// for their second send.
func (l *lane) abandon(b *batch) {
	if l.inFlight != b {
		return
	}
	for _, s := range b.sends {
		c := s.call
		if !c.settled && c.queued == 0 && c.sendCount < 2 {
			l.enqueue(c.send())
		}
		c.overdue = true
	}
	l.noteAbandoned(b)
	l.inFlight = nil
	l.pipeline.reloadSlots()
}

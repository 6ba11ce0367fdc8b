package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/backoff"
	"github.com/reqlock/reqlock/internal/store"
)

// ends is when the record would expire.
func (c *openCommit) ends() time.Time { return c.begun.Add(c.request.Attempt.Keep) }

// sendLater sends the commit again after a pause.
func (c *openCommit) sendLater() {
	pause := min(backoff.Pause(c.retries, maxPause, maxOpenPause), max(0, time.Until(c.ends())))
	c.retries++
	c.timer = time.AfterFunc(pause, c.send)
}

// sendNow ends the pause before the next send.
func (c *openCommit) sendNow() {
	if c.timer.Stop() {
		c.timer.Reset(0)
	}
}

// send sends the commit, unless the server is known to be away, or the queue of the key has an
// attempt, or one that has not run is being aborted: the store would refuse the commit because of it.
func (c *openCommit) send() {
	q := c.queue
	e, unserved := q.engine, q.engine.refuseUnserved(c.request.Key)
	var after callbacks
	q.shard.mu.Lock()
	switch {
	case c.ended:
	case !time.Now().Before(c.ends()):
		c.end(c.fault, &after)
	case unserved != nil || q.state != idle || e.discards.isAborting(q.key):
		c.sendLater()
	default:
		c.sending = true
		e.open.sends.Add()
	}
	sending := c.sending
	q.shard.mu.Unlock()
	after.run(e)
	if sending {
		c.sendSealed()
	}
}

// onResult handles the result of a send.
func (c *openCommit) onResult(released store.ReleaseResult, err error) {
	q := c.queue
	defer q.engine.open.sends.Done()
	var after callbacks
	q.shard.mu.Lock()
	c.sending = false
	switch {
	case c.ended:
	case err == nil:
		q.answered = q.answered || released.Record != store.NotStored
		if released.Record == store.Restored {
			restored := c.event
			restored.Kind, restored.Repeated, restored.Held = Restored, false, time.Since(c.granted)
			q.engine.report(restored, &after)
		}
		if released.Record == store.NotStored {
			c.event.Loss = Taken
		}
		c.end(nil, &after)
	case c.last, q.engine.isClosing() && !store.FaultOf(err).Temporary: // such as that of a client that is closed
		c.end(err, &after)
	default:
		c.fault = err
		c.sendLater()
	}
	q.shard.mu.Unlock()
	after.run(q.engine)
}

// end removes the commit from its queue, and reports how it has ended. The error is the fault
// because of which the outcome stays unknown.
func (c *openCommit) end(err error, after *callbacks) {
	q := c.queue
	e := q.engine
	at := &q.open
	for *at != c {
		at = &(*at).next
	}
	*at, c.ended = c.next, true
	c.timer.Stop()
	c.endSeal()
	e.open.remove(c.size())
	c.event.Held, c.event.Err = time.Since(c.granted), err
	e.report(c.event, after)
	if err != nil {
		unknown := c.event
		unknown.Kind, unknown.Repeated = OutcomeUnknown, false
		e.report(unknown, after)
	}
	q.recycle()
}

// endResolved ends the open commits of a key, because an operator has resolved its request. The
// store refuses them: this also ends what copies in this process get.
func (e *Engine) endResolved(key string) {
	var after callbacks
	s := e.shardOf(key)
	s.mu.Lock()
	for q := s.queues[key]; q != nil && q.open != nil; {
		q.open.event.Loss = Taken
		q.open.end(nil, &after)
	}
	s.mu.Unlock()
	after.run(e)
}

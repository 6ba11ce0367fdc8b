package engine

// lose ends the queue's lease under its holder.
func (q *queue) lose(loss Loss, after *callbacks) {
	lease := q.lease
	h := lease.holder
	q.engine.schedule.drop(lease)
	q.markLost(lease)
	lease.holder = nil
	h.leaseEnded = true
	q.engine.work.Done()
	if h.cutOff = loss == Closed && h.request.Attempt != nil; h.cutOff {
		q.engine.cutOff.Add()
	}
	if h.loss == NotLost {
		h.reportLoss(loss, after)
	}
	q.endEpisode(true)
}

// loseAll ends every lease that has a holder. The caller of Close observes that: the process may
// end soon.
func (e *Engine) loseAll() {
	var after callbacks
	e.eachHeld(func(q *queue) { q.lose(Closed, &after) })
	events := after.events
	after.events = nil
	after.run(e)
	e.observeAll(events)
}

// isLost reports whether the token belongs to a lost lease with a holder that has not
// returned yet.
func (q *queue) isLost(token string) bool {
	_, lost := q.lostTokens[token]
	return lost
}

// markLost notes a lease that was lost while its holder runs.
func (q *queue) markLost(lease *lease) {
	if q.lostTokens == nil {
		q.lostTokens = make(map[string]*Attempt)
	}
	q.lostTokens[lease.token] = lease.attempt
}

// waitsForLost reports whether an attempt has to wait, because another one of this process runs
// after the loss of its lease: the store may have lost the record. Exception: an attempt that may
// run after one that died, because its handler finds out what the other one did.
func (q *queue) waitsForLost(own *Attempt) bool {
	return own != nil && !own.Rerun && q.runsLost()
}

// mustAskLater reports whether the first waiter has to wait for an attempt of this process that has
// lost its lease. This process has the key then, so the last fault does not count.
func (q *queue) mustAskLater() bool {
	if q.waitsForLost(q.first.hold.request.Attempt) {
		q.lastFault = nil
		return true
	}
	return q.committing > 0
}

// runsLost reports whether an attempt of this process runs after the loss of its lease.
func (q *queue) runsLost() bool {
	for _, attempt := range q.lostTokens {
		if attempt != nil {
			return true
		}
	}
	return false
}

// forgetLost removes the token of a lost lease: its holder has returned.
func (q *queue) forgetLost(token string) {
	delete(q.lostTokens, token)
	q.endContest()
	if q.asksLater {
		q.ask()
		return
	}
	q.recycle()
}

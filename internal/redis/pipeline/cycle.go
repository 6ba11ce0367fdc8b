package pipeline

import (
	"runtime"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// run sends batch after batch until the queue is empty, or until the lane abandons the
// batch.
func (l *lane) run(b *batch) {
	defer l.work.Done()
	l.coalesce(b, 2)
	for l.cycle(b) {
		l.coalesce(b, manyCommands)
	}
}

// manyCommands is how many commands the last batch must have had if a busy lane is to let other
// goroutines run before the next one. Where goroutines keep all processors busy, a lane that lets
// them run waits for milliseconds, which takes longer than smaller batches do.
const manyCommands = 16

// coalesce lets other goroutines run first, if the last batch had at least so many commands and the
// batch has room, and adds what they send to the batch. Callers whose replies came together
// send their next commands together, and without this the first of them would be sent without
// the others: fewer and larger batches take less CPU time here and of the server. It waits for
// no other goroutine.
func (l *lane) coalesce(b *batch, least int) {
	l.mu.Lock()
	gathers := l.lastSize >= least && len(b.sends) < l.width
	l.mu.Unlock()
	if !gathers {
		return
	}
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !b.abandoned {
		l.fill(b)
		b.begun = time.Now()
	}
}

// cycle sends the batch, delivers the replies, and fills the batch again. It reports
// whether the batch has commands then.
func (l *lane) cycle(b *batch) (more bool) {
	l.dispatch(b)
	l.mu.Lock()
	now := time.Now()
	l.wasFast, l.lastSize = now.Sub(b.begun) < fastTime, len(b.sends)
	l.noteHealth(b, now)
	l.noteSuccess(b, now)
	inTime := b.isInTime(now)
	for _, s := range b.sends {
		l.receive(b, s)
	}
	for _, s := range slices.Backward(b.sends) { // from the end of the heap, where it is fast
		if s.call.settled {
			l.calls.remove(s.call)
		}
	}
	l.mu.Unlock()
	for i := range b.completions {
		b.completions[i].deliver()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.endInline()
	l.noteEnd(b, inTime)
	if b.abandoned {
		l.start()
		return false
	}
	b.reset()
	if len(l.queue) == 0 || !l.load(b, time.Now()) { // the queue has what deliver caused
		l.inFlight, l.spare = nil, b
		return false
	}
	return true
}

// dispatch sends the batch. It sends nothing if the slots of a cluster cannot be loaded:
// the client would only try to load them once more.
func (l *lane) dispatch(b *batch) {
	loaded, err := l.pipeline.loadSlots(b)
	if err != nil {
		b.failUnsent(0, err)
		return
	}
	n := len(b.sends)
	if loaded {
		n = l.dropSettled(b)
		b.failUnsent(n, command.ErrNoReply)
	}
	if l.acknowledged {
		l.execAcknowledged(b, n)
		return
	}
	b.exec(l.rdb, n, l.pipeline.joins.Load())
	if b.joint.IsRefused {
		l.pipeline.joins.Store(false)
	}
}

// dropSettled moves the sends of a delayed batch that are still needed to its front, and
// returns their number. The other calls are settled, or the lane has abandoned the batch
// and another one sends them.
func (l *lane) dropSettled(b *batch) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range b.sends {
		if c := s.call; !c.settled && (c.sendCount < 2 || s != &c.firstSend) {
			b.sends[n], b.sends[i] = b.sends[i], b.sends[n]
			n++
		}
	}
	return n
}

// receive processes the reply to a send of the batch.
func (l *lane) receive(b *batch, s *send) {
	c, r := s.call, s.reply
	if c.settled {
		b.completions = append(b.completions, completion{call: c, reply: r, late: true})
		return
	}
	failed := r.Err != nil && command.IsLost(r.Err)
	l.wasFast = l.wasFast && !failed
	if failed {
		c.failure = r.Err
		l.pipeline.reloadSlots()
	} else if fallback := c.Fallback(s.command, s.reply, c.sendCount); fallback != nil { // part of the same send
		c.maybeApplied = c.maybeApplied || r.Err != nil && command.MayBeApplied(r.Err)
		l.enqueue(&send{call: c, command: fallback})
		return
	}
	c.unanswered--
	c.maybeApplied = c.maybeApplied || (failed && !command.IsUnsent(r.Err))
	switch {
	case failed && c.sendCount < 2:
		l.enqueue(c.send())
	case !failed || c.unanswered == 0:
		l.noteSettled(c, r)
		b.completions = append(b.completions, c.settle(r))
		if c.inline != b {
			l.detach(c)
		}
	}
}

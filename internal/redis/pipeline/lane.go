package pipeline

import (
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// A lane sends commands in batches, one batch at a time (group commit): commands that
// arrive while a batch is in flight form the next one. A command that finds the lane idle
// is sent at once and alone. So batching delays nothing, and batches grow as the server
// gets busy.
//
// A batch runs on a goroutine of the lane, which lives only while there is something to
// send, or on the goroutine of a caller: see inline.go. The lane abandons a batch that has
// kept a command waiting for half of its bound. The goroutine of that batch still reads
// late replies, and another one sends all that the batch has left unanswered, on another
// connection.
type lane struct {
	rdb          redis.UniversalClient
	work         *inflight.Counter
	pipeline     *Pipeline
	health       *health // of the server
	canRunInline bool    // see topology.CanRunInline
	width        int     // commands in a batch at most
	acknowledged bool    // replicas have to acknowledge what its batches write

	mu        sync.Mutex
	queue     []*send
	inFlight  *batch // nil if none is
	spare     *batch // an empty one to use again
	calls     []*Call
	wasFast   bool // the last batch took less than fastTime
	wasShared bool // the last batch had several commands
	timer     *time.Timer
	timerAt   time.Time // when the timer fires; zero if it is not set
}

// do sends a call.
func (l *lane) do(c *Call) {
	if l.acknowledged {
		c.addReplicaTime(l.pipeline.replicas.Timeout)
	}
	l.mu.Lock()
	l.calls = append(l.calls, c)
	c.index = len(l.calls)
	l.queue = append(l.queue, c.send())
	l.armTimer(c.resendAt)
	b := l.next(c.Begun)
	inline := l.mayRunInline(b, c)
	l.mu.Unlock()
	switch {
	case b == nil:
	case inline:
		l.runInline(b)
	default:
		go l.run(b)
	}
}

// start runs a batch if none is in flight and the queue is not empty. The caller has
// locked mu.
func (l *lane) start() {
	if b := l.next(time.Now()); b != nil {
		go l.run(b)
	}
}

// next returns a batch to run now, or nil if one is in flight or the queue is empty. The
// caller has locked mu.
func (l *lane) next(now time.Time) *batch {
	if l.inFlight != nil || len(l.queue) == 0 {
		return nil
	}
	if l.spare == nil {
		l.spare = &batch{}
	}
	b := l.spare
	if !l.load(b, now) {
		return nil
	}
	l.spare = nil
	l.work.Add()
	return b
}

// load fills an empty batch that begins now, and reports whether it has any command. It
// skips calls that are settled.
func (l *lane) load(b *batch, now time.Time) bool {
	l.fill(b)
	l.inFlight = nil
	if len(b.sends) > 0 {
		l.inFlight, b.begun = b, now
	}
	return l.inFlight != nil
}

// batchBytes limits the records in a batch of several commands: each reply waits for all
// commands that are sent with it.
const batchBytes = 1 << 20

// fill moves sends from the queue into the batch, as far as there is room.
func (l *lane) fill(b *batch) {
	n, bytes := 0, 0
	for n < len(l.queue) && len(b.sends) < l.width {
		s := l.queue[n]
		bytes += s.call.size
		if bytes > batchBytes && len(b.sends) > 0 {
			break
		}
		s.call.queued = false
		if !s.call.settled {
			b.sends = append(b.sends, s)
		}
		n++
	}
	left := copy(l.queue, l.queue[n:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
}

// run sends batch after batch until the queue is empty, or until the lane abandons the
// batch.
func (l *lane) run(b *batch) {
	defer l.work.Done()
	l.coalesce(b)
	for more := true; more; {
		more = l.cycle(b)
	}
}

// coalesce lets other goroutines run first, if the last batch had several commands, and
// adds what they send to the batch. Callers whose replies came together send their next
// commands together, and without this the first of them would be sent alone. It waits for
// no other goroutine.
func (l *lane) coalesce(b *batch) {
	l.mu.Lock()
	shared := l.wasShared
	l.mu.Unlock()
	if !shared {
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
	l.wasFast, l.wasShared = now.Sub(b.begun) < fastTime, len(b.sends) > 1
	l.noteHealth(b, now)
	for _, s := range b.sends {
		l.receive(b, s)
		l.remove(s.call)
	}
	l.mu.Unlock()
	for i := range b.completions {
		b.completions[i].deliver()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.endInline()
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
	b.exec(l.rdb, n)
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
		c.queued = true
		l.queue = append(l.queue, &send{call: c, command: fallback})
		return
	}
	c.unanswered--
	c.maybeApplied = c.maybeApplied || (failed && !command.IsUnsent(r.Err))
	switch {
	case failed && c.sendCount < 2:
		l.queue = append(l.queue, c.send())
	case !failed || c.unanswered == 0:
		b.completions = append(b.completions, c.settle(r))
		if c.inline != b {
			l.detach(c)
		}
	}
}

// remove removes a settled call from the lane's calls.
func (l *lane) remove(c *Call) {
	if !c.settled || c.index == 0 {
		return
	}
	end := len(l.calls) - 1
	l.calls[c.index-1] = l.calls[end]
	l.calls[end].index = c.index
	l.calls[end] = nil
	l.calls = l.calls[:end]
	c.index = 0
}

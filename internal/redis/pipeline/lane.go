package pipeline

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
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
// connection: see congestion.go for how often.
type lane struct {
	rdb          redis.UniversalClient
	work         *inflight.Counter
	pipeline     *Pipeline
	health       *health // of the server
	canRunInline bool    // see topology.CanRunInline
	width        int     // commands in a batch at most
	acknowledged bool    // replicas have to acknowledge what its batches write

	mu       sync.Mutex
	queue    []*send
	taken    int      // sends at the front of the queue that batches have taken
	inFlight *batch   // nil if none is
	spare    *batch   // an empty one to use again
	calls    callHeap // not settled yet
	congestion
	wasFast  bool // the last batch took less than fastTime
	lastSize int  // commands of the last batch
	timer    *time.Timer
	timerAt  time.Time // when the timer fires; zero if it is not set
}

// do sends a call.
func (l *lane) do(c *Call) {
	if l.acknowledged {
		c.addReplicaTime(l.pipeline.replicas.Timeout)
	}
	l.mu.Lock()
	l.enqueue(c.send())
	b := l.next(c.Begun)
	inline := l.mayRunInline(b, c)
	at := c.firstCheck()
	l.calls.put(c, at)
	l.armTimer(at)
	l.mu.Unlock()
	switch {
	case b == nil:
	case inline:
		l.runInline(b)
	default:
		go l.run(b)
	}
}

// enqueue adds a send to the queue. The caller has locked mu.
func (l *lane) enqueue(s *send) {
	s.call.queued++
	l.queue = append(l.queue, s)
}

// start runs a batch if none is in flight and the queue is not empty. The caller has
// locked mu.
func (l *lane) start() {
	if b := l.next(time.Now()); b != nil {
		go l.run(b)
	}
}

// next returns a batch to run now, or nil if one is in flight, the queue is empty, or the lane
// is congested. The caller has locked mu.
func (l *lane) next(now time.Time) *batch {
	if l.inFlight != nil || len(l.queue) == 0 {
		return nil
	}
	if end := l.pausedUntil(); now.Before(end) {
		l.armTimer(end)
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
		l.inFlight, b.begun, l.begunAt = b, now, now
	}
	return l.inFlight != nil
}

// batchBytes limits the records in a batch of several commands: each reply waits for all
// commands that are sent with it.
const batchBytes = 1 << 20

// fill moves sends from the queue into the batch, as far as there is room. It closes the gap
// at the front of the queue once the gap is no shorter than the rest, which costs no more than
// what made the gap.
func (l *lane) fill(b *batch) {
	bytes := 0
	for _, s := range b.sends { // those from before coalesce
		bytes += s.call.size
	}
	for l.taken < len(l.queue) && len(b.sends) < l.width {
		s := l.queue[l.taken]
		bytes += s.call.size
		if bytes > batchBytes && len(b.sends) > 0 {
			break
		}
		s.call.queued--
		if !s.call.settled {
			b.sends = append(b.sends, s)
		}
		l.queue[l.taken] = nil
		l.taken++
	}
	if left := l.queue[l.taken:]; len(left) <= l.taken {
		n := copy(l.queue, left)
		clear(l.queue[n:])
		l.queue, l.taken = l.queue[:n], 0
	}
}

package redisstore

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/tally"
)

// A lane sends commands in batches: while one is in flight, the next one
// gathers. A command that finds the lane empty leaves at once and alone, so
// nothing is delayed, and batches grow by themselves as the server gets busy.
//
// A batch runs on a goroutine of the lane, which is there only as long as there
// is something to send. A batch that has kept a command waiting for half of its
// bound is left behind: its goroutine reads on for what comes late, and another
// one takes over, on another connection, with all that the batch has left open.
type lane struct {
	rdb     redis.UniversalClient
	work    *tally.Tally
	instead func(c command, err error) (command, bool)

	mu        sync.Mutex
	queue     []*send
	flight    *batch // nil while nothing is under way
	exchanges []*exchange
	timer     *time.Timer
	due       time.Time // when the timer fires; zero while it does not
}

// do runs an exchange.
func (l *lane) do(x *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exchanges = append(l.exchanges, x)
	x.position = len(l.exchanges)
	l.queue = append(l.queue, x.send())
	l.watch(x.resendAt)
	l.start()
}

// start starts a batch if none is in flight and there is something to send.
func (l *lane) start() {
	if l.flight != nil || len(l.queue) == 0 {
		return
	}
	b := newBatch()
	if l.load(b) {
		l.work.Add()
		go l.run(b)
	}
}

// load loads the next batch, and reports whether there is anything to send.
// What was given up meanwhile is not sent any more.
func (l *lane) load(b *batch) bool {
	n := 0
	for n < len(l.queue) && len(b.sends) < maxBatch {
		s := l.queue[n]
		s.of.queued = false
		if !s.of.settled {
			b.sends = append(b.sends, s)
		}
		n++
	}
	left := copy(l.queue, l.queue[n:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
	l.flight = nil
	if len(b.sends) > 0 {
		l.flight, b.begun = b, time.Now()
	}
	return l.flight != nil
}

// run sends batch after batch until nothing is left to send, or until the lane
// has left it behind.
func (l *lane) run(b *batch) {
	defer l.work.Done()
	for more := true; more; {
		b.fly(l.rdb)
		l.mu.Lock()
		for _, s := range b.sends {
			l.take(b, s)
			l.forget(s.of)
		}
		l.mu.Unlock()
		for i := range b.notices {
			b.notices[i].tell()
		}
		l.mu.Lock()
		if b.left {
			more = false
			l.start()
		} else {
			b.unload()
			more = l.load(b) // with what those who were told send now
		}
		l.mu.Unlock()
	}
}

// take takes in the reply to a send of the batch.
func (l *lane) take(b *batch, s *send) {
	x, r := s.of, s.reply
	if x.settled {
		x.open--
		b.notices = append(b.notices, notice{of: x, reply: r, late: true})
		return
	}
	failed := r.err != nil && isTransport(r.err)
	if r.err != nil && !failed {
		if c, ok := l.instead(s.command, r.err); ok { // the same send, in other words
			x.queued = true
			l.queue = append(l.queue, &send{of: x, command: c})
			return
		}
	}
	x.open--
	x.blind = x.blind || (failed && !neverSent(r.err))
	switch {
	case failed && x.sends < 2:
		l.queue = append(l.queue, x.send())
	case !failed || x.open == 0:
		b.notices = append(b.notices, x.end(r))
	}
}

// forget takes a settled exchange off the lane's list.
func (l *lane) forget(x *exchange) {
	if !x.settled || x.position == 0 {
		return
	}
	end := len(l.exchanges) - 1
	l.exchanges[x.position-1] = l.exchanges[end]
	l.exchanges[end].position = x.position
	l.exchanges[end] = nil
	l.exchanges = l.exchanges[:end]
	x.position = 0
}

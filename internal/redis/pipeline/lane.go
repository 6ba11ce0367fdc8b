package pipeline

import (
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// A lane sends commands in batches: while one is in flight, the next one
// gathers. A command that finds the lane empty leaves at once and alone, so
// nothing is delayed, and batches grow by themselves as the server gets busy.
//
// A batch runs on a goroutine of the lane, which is there only as long as there
// is something to send, or on that of a caller: see lead. A batch that has kept
// a command waiting for half of its bound is left behind: its goroutine reads on
// for what comes late, and another one takes over, on another connection, with
// all that the batch has left open.
type lane struct {
	rdb      redis.UniversalClient
	work     *inflight.Counter
	routes   *Pipeline
	leadable bool // see canLead
	width    int
	// acknowledged is set where replicas have to have what its batches write.
	acknowledged bool

	mu        sync.Mutex
	queue     []*send
	flight    *batch // nil while nothing is under way
	spare     *batch // has nothing to send
	exchanges []*Call
	swift     bool // the last batch was
	crowded   bool // it had several commands
	timer     *time.Timer
	due       time.Time // when the timer fires; zero while it does not
}

// do runs an exchange.
func (l *lane) do(x *Call) {
	if l.acknowledged {
		x.allow(l.routes.replicas.Timeout)
	}
	l.mu.Lock()
	l.exchanges = append(l.exchanges, x)
	x.position = len(l.exchanges)
	l.queue = append(l.queue, x.send())
	l.watch(x.resendAt)
	b := l.next(x.Begun)
	leads := l.leads(b, x)
	l.mu.Unlock()
	switch {
	case b == nil:
	case leads:
		l.lead(b)
	default:
		go l.run(b)
	}
}

// start starts a batch if none is in flight and there is something to send.
func (l *lane) start() {
	if b := l.next(time.Now()); b != nil {
		go l.run(b)
	}
}

// next returns a batch to run now, if none is in flight and there is something
// to send.
func (l *lane) next(now time.Time) *batch {
	if l.flight != nil || len(l.queue) == 0 {
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

// load loads the next commands into an empty batch that begins now, and reports
// whether there are any. What was given up meanwhile is not sent any more.
func (l *lane) load(b *batch, now time.Time) bool {
	l.fill(b)
	l.flight = nil
	if len(b.sends) > 0 {
		l.flight, b.begun = b, now
	}
	return l.flight != nil
}

// batchBytes is how many bytes of records leave together, if it is more than one:
// what leaves with big ones waits for them.
const batchBytes = 1 << 20

// fill moves what waits into the batch, as far as there is room.
func (l *lane) fill(b *batch) {
	n, bytes := 0, 0
	for n < len(l.queue) && len(b.sends) < l.width {
		s := l.queue[n]
		bytes += s.of.size
		if bytes > batchBytes && len(b.sends) > 0 {
			break
		}
		s.of.queued = false
		if !s.of.settled {
			b.sends = append(b.sends, s)
		}
		n++
	}
	left := copy(l.queue, l.queue[n:])
	clear(l.queue[left:])
	l.queue = l.queue[:left]
}

// run sends batch after batch until nothing is left to send, or until the lane
// has left it behind.
func (l *lane) run(b *batch) {
	defer l.work.Done()
	l.gather(b)
	for more := true; more; {
		more = l.turn(b)
	}
}

// gather lets those go first who are ready to run, where there was more than one
// the last time, and takes along what they send. Those who are told together come
// back together, and the first of them would leave alone. Nobody is waited for.
func (l *lane) gather(b *batch) {
	l.mu.Lock()
	crowded := l.crowded
	l.mu.Unlock()
	if !crowded {
		return
	}
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !b.left {
		l.fill(b)
		b.begun = time.Now()
	}
}

// turn sends the batch, tells everybody what came of it, and reports whether it
// was loaded again.
func (l *lane) turn(b *batch) (more bool) {
	l.launch(b)
	l.mu.Lock()
	l.swift, l.crowded = time.Since(b.begun) < swiftTime, len(b.sends) > 1
	for _, s := range b.sends {
		l.take(b, s)
		l.forget(s.of)
	}
	l.mu.Unlock()
	for i := range b.notices {
		b.notices[i].deliver()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.back()
	if b.left {
		l.start()
		return false
	}
	b.unload()
	if len(l.queue) == 0 || !l.load(b, time.Now()) { // what those who were told send now
		l.flight, l.spare = nil, b
		return false
	}
	return true
}

// launch sends the batch. In a cluster whose slots nobody knows it sends nothing;
// the client would only ask for them once more.
func (l *lane) launch(b *batch) {
	asked, err := l.routes.learn(b)
	if err != nil {
		b.ground(0, err)
		return
	}
	n := len(b.sends)
	if asked {
		n = l.sift(b)
		b.ground(n, command.ErrNoReply)
	}
	if l.acknowledged {
		l.flyAcknowledged(b, n)
		return
	}
	b.fly(l.rdb, n)
}

// sift puts those sends of a batch first that are still to be sent after it was
// kept waiting, and returns how many they are. The others were given up meanwhile,
// or the batch was left behind, and they are sent by another one.
func (l *lane) sift(b *batch) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range b.sends {
		if x := s.of; !x.settled && (x.sends < 2 || s != &x.first) {
			b.sends[n], b.sends[i] = b.sends[i], b.sends[n]
			n++
		}
	}
	return n
}

// take takes in the reply to a send of the batch.
func (l *lane) take(b *batch, s *send) {
	x, r := s.of, s.reply
	if x.settled {
		x.open--
		b.notices = append(b.notices, completion{of: x, reply: r, late: true})
		return
	}
	failed := r.Err != nil && command.IsLost(r.Err)
	l.swift = l.swift && !failed
	if failed {
		l.routes.doubt()
	} else if c := x.Fallback(s.command, s.reply, x.sends); c != nil { // the same send, in other words
		x.queued = true
		l.queue = append(l.queue, &send{of: x, command: c})
		return
	}
	x.open--
	x.blind = x.blind || (failed && !command.IsUnsent(r.Err))
	switch {
	case failed && x.sends < 2:
		l.queue = append(l.queue, x.send())
	case !failed || x.open == 0:
		b.notices = append(b.notices, x.end(r))
		if x.led != b {
			l.letGo(x)
		}
	}
}

// forget takes a settled exchange off the lane's list.
func (l *lane) forget(x *Call) {
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

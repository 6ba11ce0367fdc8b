package quorumstore

import (
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
)

// hintDelay is how long a hint from a minority of the servers is delayed. If a client retried
// after the first hint, the votes of the other servers might not be free yet.
const hintDelay = 10 * time.Millisecond

// Listen subscribes on all servers. ready is closed once a majority of the servers has
// confirmed the subscription.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	all := &subscription{missing: s.majority, ready: make(chan struct{}), stopped: make(chan struct{})}
	for _, one := range s.servers {
		confirmed, stop := one.Listen(key)
		all.stops = append(all.stops, stop)
		select {
		case <-confirmed:
			all.confirm()
			continue
		default:
		}
		s.work.Add()
		go func() {
			defer s.work.Done()
			select {
			case <-confirmed:
				all.confirm()
			case <-all.stopped:
			}
		}()
	}
	return all.ready, all.stop
}

// A subscription is one Listen on all servers.
type subscription struct {
	stops   []func()
	ready   chan struct{} // closed when missing is zero
	stopped chan struct{} // closed by stop
	once    sync.Once

	mu      sync.Mutex
	missing int // confirmations that ready still needs
}

// confirm counts the confirmation of a server.
func (s *subscription) confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing--
	if s.missing == 0 {
		close(s.ready)
	}
}

// stop ends the subscription on all servers.
func (s *subscription) stop() {
	s.once.Do(func() {
		close(s.stopped)
		for _, stop := range s.stops {
			stop()
		}
	})
}

// A hintQuorum merges the hints that several servers send for the same reason into one hint.
type hintQuorum struct {
	majority int
	work     *inflight.Counter
	deliver  func(key, token string)

	mu      sync.Mutex
	pending map[hint]*pendingHint
}

// A hint is the content of a message from a server.
type hint struct{ key, token string }

// A pendingHint is a hint that arrived less than hintDelay ago.
type pendingHint struct {
	servers   []int // the servers that have sent it
	delivered bool
}

// receive handles a hint of a server.
func (q *hintQuorum) receive(server int, key, token string) {
	h := hint{key, token}
	q.mu.Lock()
	pending := q.pending[h]
	if pending == nil {
		pending = &pendingHint{}
		if q.pending == nil {
			q.pending = make(map[hint]*pendingHint)
		}
		q.pending[h] = pending
		q.work.Add()
		time.AfterFunc(hintDelay, func() { q.expire(h) })
	}
	complete := pending.add(server, q.majority)
	q.mu.Unlock()
	if complete {
		q.deliver(key, token)
	}
}

// expire removes a pending hint, and delivers it if it was not delivered.
func (q *hintQuorum) expire(h hint) {
	defer q.work.Done()
	q.mu.Lock()
	delivered := q.pending[h].delivered
	delete(q.pending, h)
	q.mu.Unlock()
	if !delivered {
		q.deliver(h.key, h.token)
	}
}

// add adds a server, and reports whether the hint must be delivered now: whether a majority
// has sent it for the first time. A server that sends the hint again has a new reason, so the
// count restarts.
func (p *pendingHint) add(server, majority int) (complete bool) {
	if slices.Contains(p.servers, server) {
		p.servers, p.delivered = p.servers[:0], false
	}
	p.servers = append(p.servers, server)
	complete = !p.delivered && len(p.servers) >= majority
	p.delivered = p.delivered || complete
	return complete
}

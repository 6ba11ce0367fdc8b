package pubsub

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// shardedSubscriptions are the subscriptions of a process in a cluster. Each key with a
// listener has a channel in the slot of the key, so that a script can count the channel's
// subscribers. All channels at one master share a connection. A channel outlives its last
// listener by timing.linger.
//
// go-redis has sharded subscriptions, too. But one such subscription sends all channels to
// the master of the first channel, and does not report that a slot has moved.
type shardedSubscriptions struct {
	hintDecoder
	rdb    topology.Cluster
	timing timing
	shared *sharedSubscription // has the channel of the process
	// setMode is called with the mode in which scripts publish: see Subscriber.Mode.
	setMode func(mode string)
	work    *inflight.Counter

	ctx    context.Context // ends on close
	cancel context.CancelFunc
	wakeup chan struct{} // has an element when pending has changed

	mu           sync.Mutex
	channels     map[string]*shardChannel // by the name of the lock
	conns        map[*redis.Client]*shardConn
	pending      channelHeap // channels to resolve: see resolve
	isResolving  bool        // the goroutine of resolve runs
	isTableStale bool        // the client's slot table may be stale
	isPlain      bool        // an ACL forbids sharded channels: see handleError
	closed       bool
}

func newSharded(rdb topology.Cluster, decoder hintDecoder, shared *sharedSubscription, work *inflight.Counter, setMode func(mode string)) *shardedSubscriptions {
	ctx, cancel := context.WithCancel(context.Background())
	return &shardedSubscriptions{
		hintDecoder: decoder, rdb: rdb, timing: defaultTiming(), shared: shared, setMode: setMode, work: work,
		ctx: ctx, cancel: cancel, wakeup: make(chan struct{}, 1),
		channels: make(map[string]*shardChannel),
		conns:    make(map[*redis.Client]*shardConn),
	}
}

// listen adds a listener for the key. After close, ready is never closed. listen does no
// I/O.
func (s *shardedSubscriptions) listen(key string) (ready <-chan struct{}, stop func()) {
	lock := s.names.Lock(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return make(chan struct{}), func() {}
	}
	c := s.channels[lock]
	if c == nil {
		c = &shardChannel{
			key: key, lock: lock, name: s.names.ShardChannel(lock, s.process),
			ready: make(chan struct{}),
		}
		s.channels[lock] = c
		s.resolve(c)
	}
	if c.linger != nil {
		c.linger.Stop()
		c.linger = nil
	}
	c.listeners++
	return c.ready, sync.OnceFunc(func() { s.stop(c) })
}

// stop removes a listener.
func (s *shardedSubscriptions) stop(c *shardChannel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.listeners--
	if c.listeners == 0 && !s.closed {
		c.linger = time.AfterFunc(s.timing.linger, func() { s.removeIdle(c) })
	}
}

// removeIdle removes a channel without listeners.
func (s *shardedSubscriptions) removeIdle(c *shardChannel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[c.lock] != c || c.listeners > 0 {
		return
	}
	delete(s.channels, c.lock)
	s.pending.remove(c)
	if c.conn != nil {
		c.conn.unsubscribe(c)
	}
}

// close ends all connections. No connection is made after it.
func (s *shardedSubscriptions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cancel()
	for _, c := range s.channels {
		if c.linger != nil {
			c.linger.Stop()
		}
	}
	clear(s.channels)
	s.pending.removeAll()
}

// keyOf returns the key of a lock's name. ok is false if the key has no channel.
func (s *shardedSubscriptions) keyOf(name string) (key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[name]
	if c == nil {
		return "", false
	}
	return c.key, true
}

// A shardChannel is the sharded channel on which this process receives the hints for one
// key. The channel is in the slot of the key, so the process subscribes at the master of
// the slot. The mutex of shardedSubscriptions guards the fields from listeners on.
type shardChannel struct {
	key  string
	lock string // the name of the lock
	name string

	listeners int
	linger    *time.Timer // removes the channel; nil while there are listeners

	conn         *shardConn    // the connection with the subscription; nil without one
	isConfirmed  bool          // by the server
	confirmedAt  time.Time     // when the server last confirmed the subscription
	ready        chan struct{} // closed when the server has confirmed the subscription
	mayHaveMoved bool          // the slot's master may have changed
	resolveAt    time.Time     // while pending: when to resolve the master
	tries        int           // how often the master was resolved since the last success
	// heapIndex is the channel's index in the heap of pending channels plus 1. It is 0
	// while the channel is not pending.
	heapIndex int
}

// detach takes the channel off its connection and drops the server's confirmation.
func (c *shardChannel) detach() {
	if c.conn != nil {
		delete(c.conn.channels, c.name)
		c.conn = nil
	}
	if c.isConfirmed {
		c.isConfirmed = false
		c.ready = make(chan struct{})
	}
}

// postpone sets resolveAt to the end of the next pause.
func (c *shardChannel) postpone(timing timing) {
	c.resolveAt = time.Now().Add(timing.pauseAfter(c.tries))
	c.tries++
}

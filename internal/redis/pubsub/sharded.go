package pubsub

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// sharded is how this process listens in a cluster: on a channel for each key,
// which lies in the key's slot, so that a script counts who hears it. All channels
// of one master share a connection. A channel lives while there are any who listen
// for its key, and a little longer.
//
// go-redis has sharded subscriptions of its own, but all channels of one go to the
// master of the first, and nobody is told that a slot has moved.
type sharded struct {
	hearer
	rdb   topology.Cluster
	pace  pace
	plain *listeners // for servers without sharded channels
	// onPlain is called when all listen there.
	onPlain func()
	work    *inflight.Counter

	ctx  context.Context // until close
	end  context.CancelFunc
	poke chan struct{} // seek has to look again

	mu       sync.Mutex
	channels map[string]*shardChannel // by the name of the lock
	conns    map[*redis.Client]*shardConn
	sought   shardQueue // see seek
	seeking  bool       // a goroutine does
	stale    bool       // the table of slots may be
	old      bool       // all listen on the plain channel
	closed   bool
}

func newSharded(rdb topology.Cluster, hear hearer, plain *listeners, work *inflight.Counter, onPlain func()) *sharded {
	ctx, end := context.WithCancel(context.Background())
	return &sharded{
		hearer: hear, rdb: rdb, pace: defaultPace(), plain: plain, onPlain: onPlain, work: work,
		ctx: ctx, end: end, poke: make(chan struct{}, 1),
		channels: make(map[string]*shardChannel),
		conns:    make(map[*redis.Client]*shardConn),
	}
}

// listen adds one who listens for the key. After close it is never ready. It does
// no I/O.
func (s *sharded) listen(key string) (ready <-chan struct{}, stop func()) {
	lock := s.names.Lock(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return make(chan struct{}), func() {}
	case s.old:
		return s.plain.listen(key)
	}
	c := s.channels[lock]
	if c == nil {
		c = &shardChannel{
			key: key, lock: lock, name: s.names.ShardChannel(lock, s.process),
			ready: make(chan struct{}), pause: s.pace.shortest,
		}
		s.channels[lock] = c
		s.seek(c)
	}
	if c.linger != nil {
		c.linger.Stop()
		c.linger = nil
	}
	c.count++
	return c.ready, sync.OnceFunc(func() { s.stop(c) })
}

// stop removes one who listens.
func (s *sharded) stop(c *shardChannel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.count--
	switch {
	case c.count > 0 || s.closed:
	case c.unlisten != nil:
		c.unlisten()
	default:
		c.linger = time.AfterFunc(s.pace.linger, func() { s.endIdle(c) })
	}
}

// endIdle ends a channel that nobody needs.
func (s *sharded) endIdle(c *shardChannel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[c.lock] != c || c.count > 0 {
		return
	}
	delete(s.channels, c.lock)
	s.sought.remove(c)
	if c.conn != nil {
		c.conn.unsubscribe(c)
	}
}

// close ends all channels for good.
func (s *sharded) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.end()
	for _, c := range s.channels {
		if c.linger != nil {
			c.linger.Stop()
		}
	}
	clear(s.channels)
	s.sought.empty()
}

// waited returns the key of a lock's name that is listened for.
func (s *sharded) waited(name string) (key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[name]
	if c == nil {
		return "", false
	}
	return c.key, true
}

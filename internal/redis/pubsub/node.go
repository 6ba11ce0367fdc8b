package pubsub

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A shardConn is a connection to a master, for all channels in the master's slots. Only
// its goroutine sends requests.
type shardConn struct {
	parent *shardedSubscriptions
	master *redis.Client
	wakeup chan struct{} // has an element when there are queued requests
	cancel context.CancelFunc
	// checkedAt is when checkMasters last ran. Only the reading goroutine uses it.
	checkedAt time.Time

	// The mutex of the parent guards the fields below.
	channels   map[string]*shardChannel // by their names
	queued     []request                // not sent yet
	unanswered []request                // sent, without a reply yet
	isDialed   bool
}

// A request is a command on a shardConn. The server replies in the order of the requests.
// An error reply names no channel, so it belongs to the first unanswered request. Each
// request is about one channel, because the server refuses a request for channels of
// several slots as a whole.
type request struct {
	kind    kind
	name    string        // the channel's name
	channel *shardChannel // the channel to subscribe to, or nil
}

type kind int

const (
	ping kind = iota
	subscribe
	unsubscribe
)

// connect starts a connection to a master. The caller has locked mu.
func (s *shardedSubscriptions) connect(master *redis.Client) *shardConn {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &shardConn{
		parent: s, master: master, wakeup: make(chan struct{}, 1), cancel: cancel,
		channels: make(map[string]*shardChannel),
	}
	s.conns[master] = c
	s.noteMasters()
	s.work.Add()
	go func() {
		defer s.work.Done()
		defer cancel()
		c.run(ctx)
		s.disconnect(c) //nolint:contextcheck // the next connection has a context of its own
	}()
	return c
}

// subscribe assigns a channel to the connection and requests its subscription. It may be
// called again for the same channel. The caller has locked mu.
func (c *shardConn) subscribe(channel *shardChannel) {
	c.channels[channel.name] = channel
	channel.conn = c
	c.enqueue(request{subscribe, channel.name, channel})
}

// unsubscribe takes a channel off the connection. The caller has locked mu.
func (c *shardConn) unsubscribe(channel *shardChannel) {
	channel.detach()
	c.enqueue(request{kind: unsubscribe, name: channel.name})
}

func (c *shardConn) enqueue(r request) {
	c.queued = append(c.queued, r)
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// run serves the connection until it ends. The first request dials.
func (c *shardConn) run(ctx context.Context) {
	conn := newConnection(named(c.master, c.parent.shared.connectionName).SSubscribe(ctx), c.parent.timing, c.parent.shared.unreadable)
	if c.send(ctx, conn, 1) != nil {
		_ = conn.Close()
		return
	}
	c.parent.mu.Lock()
	c.isDialed = true
	c.parent.mu.Unlock()
	c.checkedAt = time.Now()
	go conn.read(c.handle)
	conn.serve(ctx, func() error { return c.ping(conn) }, c.wakeup, func() error { return c.send(conn.canceled, conn, 0) })
	conn.shutdown()
}

// send sends up to limit queued requests. With limit 0 it sends all.
func (c *shardConn) send(ctx context.Context, conn *connection, limit int) (err error) {
	for n := 0; err == nil && (limit == 0 || n < limit); n++ {
		r, more := c.next()
		if !more {
			break
		}
		switch {
		case r.kind == unsubscribe:
			err = conn.SUnsubscribe(ctx, r.name)
		case r.name == c.parent.shared.channel:
			err = conn.Subscribe(ctx, r.name)
		default:
			err = conn.SSubscribe(ctx, r.name)
		}
	}
	return err
}

// next returns the next request to send, which counts as unanswered from now on. Where an
// ACL forbids sharded channels, a request for such a channel subscribes to the channel of
// the process instead, at the same master: scripts count its subscribers there.
func (c *shardConn) next() (r request, more bool) {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	if len(c.queued) == 0 {
		c.queued = nil
		return request{}, false
	}
	r, c.queued = c.queued[0], c.queued[1:]
	if r.kind == subscribe && c.parent.isPlain {
		r.name = c.parent.shared.channel
	}
	c.unanswered = append(c.unanswered, r)
	return r, true
}

// errIdle ends a connection without channels.
var errIdle = errors.New("the connection has no channel")

// ping sends a PING. It fails if the connection has no channel.
func (c *shardConn) ping(conn *connection) error {
	if c.removeIdle() {
		return errIdle
	}
	c.parent.mu.Lock()
	c.unanswered = append(c.unanswered, request{kind: ping})
	c.parent.mu.Unlock()
	return conn.Ping(conn.canceled)
}

// removeIdle removes the connection from its parent and returns true if the connection has
// neither channels nor queued requests.
func (c *shardConn) removeIdle() bool {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	if len(c.channels) > 0 || len(c.queued) > 0 {
		return false
	}
	c.parent.remove(c)
	return true
}

// disconnect handles the end of a connection: it resolves the masters of the connection's
// channels again.
func (s *shardedSubscriptions) disconnect(c *shardConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
	if s.closed {
		return
	}
	for _, channel := range c.channels {
		s.isTableStale = true
		s.invalidate(channel)
	}
}

// remove removes a connection from conns, unless there is a newer connection to the same
// master. The caller has locked mu.
func (s *shardedSubscriptions) remove(c *shardConn) {
	if s.conns[c.master] == c {
		delete(s.conns, c.master)
		s.noteMasters()
	}
}

// noteMasters sets the mode. The process knows of many masters if it listens at more than
// one now. The caller has locked mu.
func (s *shardedSubscriptions) noteMasters() {
	if len(s.conns) > 1 {
		s.setMode(manyMasters)
	} else {
		s.setMode(oneMaster)
	}
}

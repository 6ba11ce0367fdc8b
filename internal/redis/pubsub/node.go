package pubsub

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A shardConn is one connection to one master, for all channels in its slots. Its
// goroutine says all that is said on it.
type shardConn struct {
	of     *sharded
	master *redis.Client
	calls  chan struct{} // there are words to say
	end    context.CancelFunc
	// reviewed is known to those who read.
	reviewed time.Time

	// The mutex of the sharded guards the rest.
	channels map[string]*shardChannel // by their names
	words    []word                   // to be said
	asked    []word                   // said, and not answered yet
	dialed   bool
}

// A word is what is said on a connection. A server answers in the order of the
// words, so an error, which names no channel, is that of the first one. Each is
// about one channel, since those of several slots are refused together.
type word struct {
	verb    verb
	name    string        // of the channel
	channel *shardChannel // that is subscribed
}

type verb int

const (
	ping verb = iota
	subscribe
	unsubscribe
)

// connect begins a connection to a master. The caller has locked mu.
func (s *sharded) connect(master *redis.Client) *shardConn {
	ctx, end := context.WithCancel(s.ctx)
	c := &shardConn{
		of: s, master: master, calls: make(chan struct{}, 1), end: end,
		channels: make(map[string]*shardChannel),
	}
	s.conns[master] = c
	s.work.Add()
	go func() {
		defer s.work.Done()
		defer end()
		c.run(ctx)
		s.ended(c) //nolint:contextcheck // the next connection has a life of its own
	}()
	return c
}

// subscribe puts a channel on the connection, or asks for it once more. The caller
// has locked mu.
func (c *shardConn) subscribe(channel *shardChannel) {
	c.channels[channel.name] = channel
	channel.conn = c
	c.say(word{subscribe, channel.name, channel})
}

// unsubscribe takes a channel off the connection. The caller has locked mu.
func (c *shardConn) unsubscribe(channel *shardChannel) {
	channel.leave()
	c.say(word{verb: unsubscribe, name: channel.name})
}

func (c *shardConn) say(w word) {
	c.words = append(c.words, w)
	select {
	case c.calls <- struct{}{}:
	default:
	}
}

// run lives through the connection, which the first word dials.
func (c *shardConn) run(ctx context.Context) {
	conn := newConnection(c.master.SSubscribe(ctx), c.of.pace)
	if c.write(ctx, conn, 1) != nil {
		_ = conn.Close()
		return
	}
	c.of.mu.Lock()
	c.dialed = true
	c.of.mu.Unlock()
	c.reviewed = time.Now()
	go conn.read(c.take)
	conn.watch(ctx, func() error { return c.ask(conn) }, c.calls, func() error { return c.write(conn.over, conn, 0) })
	conn.end()
}

// write says so many words, or, for 0, all.
func (c *shardConn) write(ctx context.Context, conn *connection, limit int) (err error) {
	for n := 0; err == nil && (limit == 0 || n < limit); n++ {
		w, more := c.next()
		if !more {
			break
		}
		if w.verb == subscribe {
			err = conn.SSubscribe(ctx, w.name)
		} else {
			err = conn.SUnsubscribe(ctx, w.name)
		}
	}
	return err
}

// next returns the next word to say.
func (c *shardConn) next() (w word, more bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if len(c.words) == 0 {
		c.words = nil
		return word{}, false
	}
	w, c.words = c.words[0], c.words[1:]
	c.asked = append(c.asked, w)
	return w, true
}

// errIdle ends a connection that nobody needs.
var errIdle = errors.New("no channel is left")

// ask asks a silent server for a word.
func (c *shardConn) ask(conn *connection) error {
	if c.endIdle() {
		return errIdle
	}
	c.of.mu.Lock()
	c.asked = append(c.asked, word{verb: ping})
	c.of.mu.Unlock()
	return conn.Ping(conn.over)
}

// endIdle makes place for another connection if nothing is on this one.
func (c *shardConn) endIdle() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if len(c.channels) > 0 || len(c.words) > 0 {
		return false
	}
	c.of.forget(c)
	return true
}

// ended looks anew for the channels of a connection that has ended.
func (s *sharded) ended(c *shardConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(c)
	if s.closed || s.old {
		return
	}
	for _, channel := range c.channels {
		s.stale = true
		s.lose(channel)
	}
}

// forget takes a connection off the list. The caller has locked mu.
func (s *sharded) forget(c *shardConn) {
	if s.conns[c.master] == c {
		delete(s.conns, c.master)
	}
}

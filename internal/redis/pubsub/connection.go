package pubsub

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A connection is one that only listens.
//
// go-redis can keep a redis.PubSub connected by itself, but would take a minute
// to notice a dead connection, tell nobody that messages were missed, and not
// end while it dials. So each connection here is a redis.PubSub of its own,
// which is closed on its first error.
type connection struct {
	*redis.PubSub
	pace pace
	// over has ended. go-redis connects anew inside each function of a PubSub
	// when it fails. Under a context that has ended it cannot.
	over  context.Context
	heard chan struct{} // something was read
	ended chan struct{} // closed when nothing is read any more
}

func newConnection(conn *redis.PubSub, pace pace) *connection {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	return &connection{PubSub: conn, pace: pace, over: over, heard: make(chan struct{}, 1), ended: make(chan struct{})}
}

// read passes on what the server says, errors too, until the connection fails or
// nobody wants more of it. It reads without a deadline, because one that strikes
// in the middle of a message would leave the rest of it to be taken for another.
func (c *connection) read(take func(got any, err error) (more bool)) {
	defer close(c.ended)
	for {
		got, err := c.Receive(c.over)
		if (err != nil && command.IsTransport(err)) || !take(got, err) {
			return
		}
		select {
		case c.heard <- struct{}{}:
		default:
		}
	}
}

// watch returns when the connection has ended or should: at the end of ctx, when
// the server is silent although it was asked, or when a function fails. It asks
// where the server has said nothing for a while, and writes when it is called.
func (c *connection) watch(ctx context.Context, ask func() error, calls <-chan struct{}, write func() error) {
	timer := time.NewTimer(c.pace.silence)
	defer timer.Stop()
	asked := false
	for {
		select {
		case <-c.heard:
			asked = false
			timer.Reset(c.pace.silence)
		case <-timer.C:
			if asked || ask() != nil {
				return
			}
			asked = true
			timer.Reset(c.pace.answer)
		case <-calls:
			if write() != nil {
				return
			}
		case <-c.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// end closes the connection, which ends the reading, and waits for that.
func (c *connection) end() {
	_ = c.Close()
	<-c.ended
}

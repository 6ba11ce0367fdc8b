package pubsub

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A connection is a connection with subscriptions.
//
// go-redis can reconnect a redis.PubSub by itself. But it detects a dead connection only
// after a minute, does not report that messages were missed, and cannot be stopped while
// it dials. So each connection here is a redis.PubSub of its own, which is closed on its
// first error.
type connection struct {
	*redis.PubSub
	timing timing
	// unreadable is called for a message that go-redis cannot read.
	unreadable func()
	// canceled is a canceled context. The functions of a PubSub reconnect after a failure.
	// With a canceled context they cannot.
	canceled context.Context
	received chan struct{} // has an element after each reply or message
	readDone chan struct{} // closed when read has returned
}

func newConnection(conn *redis.PubSub, timing timing, unreadable func()) *connection {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	return &connection{
		PubSub: conn, timing: timing, unreadable: unreadable,
		canceled: canceled, received: make(chan struct{}, 1), readDone: make(chan struct{}),
	}
}

// read calls handle for each reply, message and error reply. It returns when the connection
// fails or handle returns false. It reads without a deadline: a deadline in the middle of a
// message would make the rest of the message look like another reply.
func (c *connection) read(handle func(reply any, err error) (more bool)) {
	defer close(c.readDone)
	for {
		reply, err := command.Receive(c.canceled, c.PubSub)
		var unexpected *command.UnexpectedReplyError
		if errors.As(err, &unexpected) {
			c.unreadable()
		}
		if (err != nil && command.IsTransport(err)) || !handle(reply, err) {
			return
		}
		select {
		case c.received <- struct{}{}:
		default:
		}
	}
}

// serve returns when read has returned, when ctx ends, when a function fails, or when the
// server does not reply to a ping in time. It calls ping after timing.pingAfter without
// data from the server. It calls write for each element of wakeup.
func (c *connection) serve(ctx context.Context, ping func() error, wakeup <-chan struct{}, write func() error) {
	timer := time.NewTimer(c.timing.pingAfter)
	defer timer.Stop()
	isPinged := false
	for {
		select {
		case <-c.received:
			isPinged = false
			timer.Reset(c.timing.pingAfter)
		case <-timer.C:
			if isPinged || ping() != nil {
				return
			}
			isPinged = true
			timer.Reset(c.timing.replyTimeout)
		case <-wakeup:
			if write() != nil {
				return
			}
		case <-c.readDone:
			return
		case <-ctx.Done():
			return
		}
	}
}

// shutdown closes the connection, which makes read return, and waits for read.
func (c *connection) shutdown() {
	_ = c.Close()
	<-c.readDone
}

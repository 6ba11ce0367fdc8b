package pubsub

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/backoff"
)

// A subscription subscribes to one channel. After a connection has ended, it makes the
// next one.
type subscription struct {
	rdb     redis.UniversalClient
	channel string
	// connectionName is the name of each connection: see SetName.
	connectionName string
	timing         timing
	// unreadable is called for a message that cannot be read.
	unreadable func()
}

// callbacks handle the events of a subscription. The subscription calls one at a time.
type callbacks struct {
	confirmed func() // the server has confirmed the subscription on a new connection
	ended     func() // a connection has ended
	message   func(payload string)
}

// run keeps the subscription until ctx ends.
func (s *subscription) run(ctx context.Context, events callbacks) {
	for tries := 0; ; tries++ {
		if s.connect(ctx, events) {
			tries = 0
		}
		timer := time.NewTimer(s.timing.pauseAfter(tries))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// connect serves one connection until it ends. It reports whether the server has confirmed
// the subscription.
func (s *subscription) connect(ctx context.Context, events callbacks) (confirmed bool) {
	conn := newConnection(named(s.rdb, s.connectionName).Subscribe(ctx, s.channel), s.timing, s.unreadable) // read receives the errors
	go conn.read(func(reply any, err error) (more bool) {
		switch reply := reply.(type) {
		case *redis.Subscription:
			if !confirmed && reply.Kind == "subscribe" && reply.Channel == s.channel {
				confirmed = true
				events.confirmed()
			}
		case *redis.Message:
			events.message(reply.Payload)
		}
		return err == nil || confirmed // a server that refuses PING is alive
	})
	conn.serve(ctx, func() error { return conn.Ping(conn.canceled) }, nil, nil)
	conn.shutdown()
	events.ended()
	return confirmed
}

// timing are the durations and timeouts of subscriptions.
type timing struct {
	linger       time.Duration // how long a subscription outlives its last listener
	pingAfter    time.Duration // the time without data after which the server gets a PING
	replyTimeout time.Duration // the timeout of a reply
	minBackoff   time.Duration // the pause after the first failed connection
	maxBackoff   time.Duration // the longest pause
	settleTime   time.Duration // how long the master of a new channel is checked again
}

// defaultTiming detects within three seconds that a connection is dead without having been
// closed.
func defaultTiming() timing {
	return timing{
		linger:       5 * time.Second,
		pingAfter:    2 * time.Second,
		replyTimeout: time.Second,
		minBackoff:   25 * time.Millisecond,
		maxBackoff:   time.Second,
		settleTime:   3 * time.Second,
	}
}

// pauseAfter returns the pause after that many failed tries.
func (t timing) pauseAfter(tries int) time.Duration {
	return backoff.Pause(tries, t.minBackoff, t.maxBackoff)
}

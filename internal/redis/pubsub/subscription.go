package pubsub

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A subscription listens on one channel, on one connection after the other.
type subscription struct {
	rdb     redis.UniversalClient
	channel string
	pace    pace
}

// An audience is told what happens to a subscription. Its functions are called
// one at a time.
type audience struct {
	up      func() // the server has confirmed a new connection's subscription
	down    func() // a connection has ended
	message func(payload string)
}

// run listens until ctx ends.
func (s *subscription) run(ctx context.Context, a audience) {
	pause := s.pace.shortest
	for {
		if s.connect(ctx, a) {
			pause = s.pace.shortest
		}
		timer := time.NewTimer(jittered(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = s.pace.after(pause)
	}
}

// connect lives through one connection, and reports whether the server has
// confirmed its subscription.
func (s *subscription) connect(ctx context.Context, a audience) (confirmed bool) {
	conn := newConnection(s.rdb.Subscribe(ctx, s.channel), s.pace) // errors appear when it is read
	go conn.read(func(got any, err error) (more bool) {
		switch got := got.(type) {
		case *redis.Subscription:
			if !confirmed && got.Kind == "subscribe" && got.Channel == s.channel {
				confirmed = true
				a.up()
			}
		case *redis.Message:
			a.message(got.Payload)
		}
		return err == nil || confirmed // a server that refuses our PING is there
	})
	conn.watch(ctx, func() error { return conn.Ping(conn.over) }, nil, nil)
	conn.end()
	a.down()
	return confirmed
}

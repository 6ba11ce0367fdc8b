package redisstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// pace is the times of a subscription.
type pace struct {
	linger   time.Duration // how long it outlives the last one who listens
	silence  time.Duration // after how long without a word the server is asked for one
	answer   time.Duration // how long the server has for it
	shortest time.Duration // the pause after the first connection that failed
	longest  time.Duration // the pause after many
}

// defaultPace notices within three seconds that a connection is dead, although
// nobody closed it.
func defaultPace() pace {
	return pace{
		linger:   5 * time.Second,
		silence:  2 * time.Second,
		answer:   time.Second,
		shortest: 25 * time.Millisecond,
		longest:  time.Second,
	}
}

// A subscription listens on one channel, on one connection after the other.
//
// go-redis can do so by itself, but would take a minute to notice a dead
// connection, tell nobody that messages were missed, and not end while it
// dials. So each connection here is a redis.PubSub of its own, which is closed
// on its first error.
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
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1)) //nolint:gosec // jitter needs no secret randomness
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, s.pace.longest)
	}
}

// connect lives through one connection, and reports whether the server has
// confirmed its subscription.
func (s *subscription) connect(ctx context.Context, a audience) (confirmed bool) {
	conn := s.rdb.Subscribe(ctx, s.channel) // errors appear when it is read
	up := a.up
	a.up = func() {
		confirmed = true
		up()
	}
	// go-redis connects anew inside Receive and Ping when they fail. Under a
	// context that has ended it cannot.
	over, cancel := context.WithCancel(ctx)
	cancel()
	heard := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.read(over, conn, a, heard)
	}()
	s.watch(ctx, over, conn, heard, ended)
	_ = conn.Close() // which ends the reading
	<-ended
	a.down()
	return confirmed
}

// read tells the audience what the server says, until the connection fails. It
// reads without a deadline, because one that strikes in the middle of a message
// would leave the rest of it to be taken for another.
func (s *subscription) read(over context.Context, conn *redis.PubSub, a audience, heard chan<- struct{}) {
	subscribed := false
	for {
		got, err := conn.Receive(over)
		if err != nil && (!subscribed || isTransport(err)) {
			return // but a server that refuses our PING is there
		}
		switch got := got.(type) {
		case *redis.Subscription:
			if !subscribed && got.Kind == "subscribe" && got.Channel == s.channel {
				subscribed = true
				a.up()
			}
		case *redis.Message:
			a.message(got.Payload)
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	}
}

// watch returns when the connection has ended or should: at the end of ctx, or
// when the server is silent although it was asked.
func (s *subscription) watch(ctx, over context.Context, conn *redis.PubSub, heard, ended <-chan struct{}) {
	timer := time.NewTimer(s.pace.silence)
	defer timer.Stop()
	asked := false
	for {
		select {
		case <-heard:
			asked = false
			timer.Reset(s.pace.silence)
		case <-timer.C:
			if asked || conn.Ping(over) != nil {
				return
			}
			asked = true
			timer.Reset(s.pace.answer)
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

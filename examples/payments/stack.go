package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
)

// closingTime is how long requests under way may take to end.
const closingTime = 10 * time.Second

// A stack is all that runs, from Redis up to the service.
type stack struct {
	redis  *redisServer
	prefix string // of the keys in Redis
	locks  *core.Locker
	scene  *scene
	bank   *bank
	server *server
}

// start starts everything. The keys of each run have a prefix of their own, so
// that runs that share a Redis do not meet.
func (p program) start(ctx context.Context) (*stack, error) {
	redis, err := connect(ctx, p.redisURL)
	if err != nil {
		return nil, err
	}
	s := &stack{redis: redis, prefix: "payments:" + rand.Text()[:8] + ":", scene: newScene()}
	s.locks, err = core.New(redis.Client, core.WithPrefix(s.prefix), core.WithObserver(s.scene.observe))
	if err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	const cents = 100_00
	s.bank = newBank(map[string]int64{"alice": cents, "bob": cents, "carol": cents, "dave": cents}, s.scene.clearing)
	s.server, err = serve(ctx, p.addr, p.handler(s.bank, s.locks))
	if err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

// stop stops everything that was started, also when ctx has ended. The order
// matters: first the server, so that no handler runs any more, then the locks,
// which wait for what they still have to tell Redis, and Redis last.
func (s *stack) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
	defer cancel()
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.stop(ctx))
	}
	if s.locks != nil {
		errs = append(errs, s.locks.Close(ctx))
	}
	return errors.Join(append(errs, s.redis.close())...)
}

// crash takes a lock of the service's in another process, and kills that.
func (s *stack) crash(ctx context.Context, key string, ttl time.Duration) (crash, error) {
	return crashed(ctx, holding{URL: s.redis.URL, Prefix: s.prefix, Key: key, TTL: ttl})
}

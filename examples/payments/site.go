package main

import (
	"context"
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

// retention is how long a Redis keeps the answers of payments, so that one that
// is shared is not full of them after many runs. Yours keeps them for as long as
// clients may send a payment again.
const retention = 10 * time.Minute

// commandTimeout is longer than the default: four services, their clients and a
// Redis keep one machine busy, and that is no fault of Redis.
const commandTimeout = 2 * time.Second

// A site is one framework's service, with a bank and locks of its own.
type site struct {
	framework
	redis  *demoredis.Server
	prefix string // of the keys in Redis
	locks  *core.Locker
	scene  *scene
	bank   *bank
	server *server
}

// open starts a site.
func open(ctx context.Context, on framework, redis *demoredis.Server, prefix, addr string) (*site, error) {
	s := &site{framework: on, redis: redis, prefix: prefix, scene: newScene()}
	var err error
	s.locks, err = core.New(redis.Client,
		core.WithPrefix(prefix), core.WithObserver(s.scene.observe), core.WithRetention(retention),
		core.WithCommandTimeout(commandTimeout))
	if err != nil {
		return nil, err
	}
	const cents = 100_00
	balances := map[string]int64{"alice": cents, "bob": cents, "carol": cents, "dave": cents}
	s.bank = newBank(balances, slowed(s.scene.clearing))
	s.server, err = on.Serve(ctx, addr, s.bank, s.locks)
	if err != nil {
		return nil, errors.Join(err, s.locks.Close(ctx))
	}
	return s, nil
}

// close stops a site. The order matters: first the server, so that no handler
// runs any more, then the locks, which wait for what they still have to tell
// Redis.
func (s *site) close(ctx context.Context) error {
	return errors.Join(s.server.Stop(ctx), s.locks.Close(ctx))
}

// crash takes a lock of the service's in another process, and kills that.
func (s *site) crash(ctx context.Context, key string, ttl time.Duration) (crash, error) {
	return crashed(ctx, holding{URL: s.redis.URL, Prefix: s.prefix, Key: key, TTL: ttl})
}

// play plays parts one after the other, and sends the result of each until ctx
// ends.
func (s *site) play(ctx context.Context, parts []part, results chan<- result) error {
	client, err := s.Dial(s.server.Addr)
	if err != nil {
		return err
	}
	defer client.close()
	service := &running{Client: client, Scene: s.scene, Bank: s.bank, Crash: s.crash}
	for _, part := range parts {
		result := part.play(ctx, service)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		results <- result
	}
	return nil
}

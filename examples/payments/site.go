package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

// retention is how long Redis keeps the answers of payments. It is short, so that
// many runs do not fill a shared Redis. A real service keeps them as long as clients
// may send a payment again.
const retention = 10 * time.Minute

// commandTimeout is longer than the default: four services, their clients and Redis
// share one machine, and its delays are not faults of Redis.
const commandTimeout = 2 * time.Second

// A site is the service on one framework, with its own bank and locks.
type site struct {
	framework
	redis   *demoredis.Server
	prefix  string // of the keys in Redis
	locks   *core.Locker
	monitor *monitor
	bank    *bank
	server  *server
}

// open starts a site.
func open(ctx context.Context, on framework, redis *demoredis.Server, prefix, addr string) (*site, error) {
	s := &site{framework: on, redis: redis, prefix: prefix, monitor: newMonitor()}
	const cents = 100_00
	balances := map[string]int64{"alice": cents, "bob": cents, "carol": cents, "dave": cents}
	for n := range nine {
		payer, payee := batchAccounts(n)
		balances[payer], balances[payee] = cents, cents
	}
	s.bank = newBank(balances, slowed(s.monitor.clearing), s.monitor.booked)
	var err error
	s.locks, s.server, err = s.serve(ctx, s.redis.Client, addr)
	return s, err
}

// serve starts an instance of the service, with its own Locker.
func (s *site) serve(ctx context.Context, client *redis.Client, addr string) (*core.Locker, *server, error) {
	locks, err := core.New(client,
		core.WithPrefix(s.prefix), core.WithObserver(s.monitor.observe), core.WithRetention(retention),
		core.WithCommandTimeout(commandTimeout))
	if err != nil {
		return nil, nil, err
	}
	server, err := s.Serve(ctx, addr, s.bank, locks)
	if err != nil {
		return nil, nil, errors.Join(err, locks.Close(ctx))
	}
	return locks, server, nil
}

// close stops a site: first the server, so that no handler runs, and then the locks,
// which complete their releases in Redis.
func (s *site) close(ctx context.Context) error {
	return errors.Join(s.server.Stop(ctx), s.locks.Close(ctx))
}

// crash takes a lock of the service in another process, and kills that process.
func (s *site) crash(ctx context.Context, key string, ttl time.Duration) (crash, error) {
	return killHolder(ctx, holderConfig{URL: s.redis.URL, Prefix: s.prefix, Key: key, TTL: ttl})
}

// run runs scenarios one after the other, and sends the result of each until ctx
// ends.
func (s *site) run(ctx context.Context, scenarios []scenario, results chan<- result) error {
	client, err := s.Dial(s.server.Addr)
	if err != nil {
		return err
	}
	defer client.close()
	service := &testedService{Client: client, Monitor: s.monitor, Bank: s.bank, Crash: s.crash, Another: s.another}
	for _, scenario := range scenarios {
		result := scenario.run(ctx, service)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		results <- result
	}
	return nil
}

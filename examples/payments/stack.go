package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/reqlock/reqlock/examples/demoredis"
)

// closingTime is how long stop waits for the requests in flight.
const closingTime = 10 * time.Second

// A stack is a Redis and a site for each framework.
type stack struct {
	redis *demoredis.Server
	sites []*site
}

// start starts a stack. Each site of each run has its own key prefix, so that sites
// that share a Redis do not share keys.
func (p program) start(ctx context.Context) (*stack, error) {
	redis, err := demoredis.Connect(ctx, p.redisURL)
	if err != nil {
		return nil, err
	}
	s := &stack{redis: redis}
	run := "payments:" + rand.Text()[:8]
	for i, on := range p.frameworks {
		addr, err := nthAddr(p.addr, i)
		if err != nil {
			return nil, errors.Join(err, s.stop(ctx))
		}
		site, err := open(ctx, on, redis, fmt.Sprintf("%s:%s:", run, on.Name), addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", on.Name, err), s.stop(ctx))
		}
		s.sites = append(s.sites, site)
	}
	return s, nil
}

// stop stops the sites, all at once, and Redis last. It does so even if ctx has
// ended.
func (s *stack) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTime)
	defer cancel()
	errs := make([]error, len(s.sites)+1)
	var stopping sync.WaitGroup
	for i, site := range s.sites {
		stopping.Go(func() { errs[i] = site.close(ctx) })
	}
	stopping.Wait()
	errs[len(s.sites)] = s.redis.Close()
	return errors.Join(errs...)
}

// nthAddr returns the address that is n ports after the first one. If the first port
// is 0, all ports are 0.
func nthAddr(first string, n int) (string, error) {
	host, port, err := net.SplitHostPort(first)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("address %s: the port is not a number", first)
	}
	if number == 0 {
		return first, nil
	}
	return net.JoinHostPort(host, strconv.Itoa(int(number)+n)), nil
}

package quorumstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/topology"
)

// Why a client is refused.
var (
	errNil      = errors.New("is nil")
	errManifold = errors.New("leads to several servers, or hides what it leads to: " +
		"each client of a quorum is one of a server alone, made by redis.NewClient")
	errFailover = errors.New("leads to a master that Sentinel may replace by a replica, which would not know for whom it voted: " +
		"each client of a quorum is one of a server alone, made by redis.NewClient")
)

// sentinelAddr is the address that go-redis gives to a client of Sentinel.
const sentinelAddr = "FailoverClient"

// connect returns a client of the same server as the given one, whose connections
// the muster sees first. Nothing else of the given one is used: not its
// connections, and not its hooks.
func (m *muster) connect(i int, given redis.UniversalClient) (*redis.Client, error) {
	if given == nil {
		return nil, errNil
	}
	one, ok := given.(topology.Server)
	if !ok {
		return nil, errManifold
	}
	o := *one.Options()
	if o.Addr == sentinelAddr {
		return nil, errFailover
	}
	unset(&o)
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return m.admit(ctx, i, conn)
	}
	o.Dialer = m.watch(i, o.Dialer)
	return redis.NewClient(&o), nil
}

// unset takes back what go-redis has made of options that mean "none": it would
// take what it has made of them for "the default". Nothing is kept ready or cached.
func unset(o *redis.Options) {
	for _, timeout := range []*time.Duration{&o.ReadTimeout, &o.WriteTimeout} {
		if *timeout <= 0 {
			*timeout--
		}
	}
	for _, backoff := range []*time.Duration{&o.MinRetryBackoff, &o.MaxRetryBackoff} {
		if *backoff == 0 {
			*backoff = -1
		}
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = -1
	}
	o.MinIdleConns = 0
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.PushNotificationProcessor = nil // which serves one client
}

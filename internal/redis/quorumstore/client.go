package quorumstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/topology"
)

// The reasons to refuse a client.
var (
	errNil            = errors.New("is nil")
	errSeveralServers = errors.New("leads to several servers, or does not show its options: " +
		"make each client of a quorum with redis.NewClient, for one server")
	errFailover = errors.New("leads to a master that Sentinel may replace by a replica, which may lack votes of the master: " +
		"make each client of a quorum with redis.NewClient, for one server")
)

// sentinelAddr is the address that go-redis gives to a client of Sentinel.
const sentinelAddr = "FailoverClient"

// connect returns a client with the options of the given client. Each new connection of the
// returned client is checked by admit. The connections and hooks of the given client are not
// used.
func (m *membership) connect(i int, given redis.UniversalClient) (*redis.Client, error) {
	if given == nil {
		return nil, errNil
	}
	one, ok := given.(topology.Server)
	if !ok {
		return nil, errSeveralServers
	}
	o := *one.Options()
	if o.Addr == sentinelAddr {
		return nil, errFailover
	}
	restoreNone(&o)
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		return m.admit(ctx, i, conn)
	}
	o.Dialer = m.track(i, o.Dialer)
	return redis.NewClient(&o), nil
}

// restoreNone restores the options that mean "none". go-redis normalizes its options, and
// would read a normalized "none" as "the default". restoreNone also disables idle
// connections and the client-side cache.
func restoreNone(o *redis.Options) {
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
	o.PushNotificationProcessor = nil // a processor serves one client only
}

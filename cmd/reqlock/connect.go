package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// errURL never has the text of the parser, which may have a part of a password.
var errURL = &usageError{"the URL of Redis cannot be parsed: it is like redis://USER:PASSWORD@HOST:6379/0. " +
	"Escape special characters of the password, and see reqlock help for the parameters"}

// A server is the Redis of a call.
type server struct {
	*inspect.Inspector

	rdb redis.UniversalClient
}

// withServer calls a function with the Redis of the call.
func (c *call) withServer(do func(s *server) error) (err error) {
	raw := c.url
	if raw == "" {
		raw = c.getenv("REDIS_URL")
	}
	if raw == "" {
		return misuse("there is no Redis: set REDIS_URL or --url")
	}
	rdb, err := newClient(raw)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	i, err := inspect.New(rdb, inspect.WithPrefix(c.prefix), inspect.WithLimit(c.limit), inspect.WithRetention(c.retention), inspect.WithObserver(c.observe))
	switch {
	case err != nil:
		return misuse("%s", strings.TrimPrefix(err.Error(), "reqlock: "))
	case c.timeout <= 0:
		return misuse("--timeout is not positive")
	}
	return do(&server{i, rdb})
}

// commandTimeout bounds a command of a Locker, as far as --timeout allows it.
const commandTimeout = 2 * time.Second

// withLocker calls a function with a Locker, as the service has one.
func (s *server) withLocker(ctx context.Context, c *call, do func(*core.Locker) error, opts ...core.Option) error {
	opts = append(opts, core.WithPrefix(c.prefix), core.WithRetention(c.retention), core.WithLogger(nil), core.WithCommandTimeout(min(c.timeout, commandTimeout)))
	locks, err := core.New(s.rdb, opts...)
	if err != nil {
		return err
	}
	err = do(locks)
	if closeErr := locks.Close(ctx); err == nil { // otherwise it is about the same
		err = closeErr
	}
	return err
}

// newClient returns a client of the Redis of a URL. It does no I/O.
func newClient(raw string) (redis.UniversalClient, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Fragment != "" { // "redis:host", or a password with a #
		return nil, errURL
	}
	var kind string
	u.Scheme, kind, _ = strings.Cut(u.Scheme, "+")
	raw = u.String()
	switch query := u.Query(); {
	case kind == "sentinel" || kind == "" && query.Has("master_name"):
		return newSentinelClient(raw)
	case kind == "cluster" || kind == "" && query.Has("addr"):
		o, err := redis.ParseClusterURL(raw)
		if err != nil {
			return nil, errURL
		}
		o.ContextTimeoutEnabled, o.DialerRetries = true, 1
		return redis.NewClusterClient(o), nil
	case kind != "":
		return nil, errURL
	}
	o, err := redis.ParseURL(raw)
	if err != nil {
		return nil, errURL
	}
	o.ContextTimeoutEnabled, o.DialerRetries = true, 1
	return redis.NewClient(o), nil
}

// newSentinelClient returns a client of the master that Sentinel names.
func newSentinelClient(raw string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(raw)
	switch {
	case err != nil:
		return nil, errURL
	case o.MasterName == "":
		return nil, misuse("the URL of Sentinel lacks master_name=NAME")
	case o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly:
		return nil, misuse("the URL reads from replicas, which may not have the locks yet: remove route_by_latency, route_randomly and replica_only")
	}
	o.ContextTimeoutEnabled, o.DialerRetries = true, 1
	return redis.NewFailoverClient(o), nil
}

// each calls a function for the server, or for each master of a cluster, one after the other.
func (s *server) each(ctx context.Context, do func(ctx context.Context, rdb redis.UniversalClient) error) error {
	cluster, isCluster := s.rdb.(*redis.ClusterClient)
	if !isCluster {
		return do(ctx, s.rdb)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return do(ctx, master)
	})
}

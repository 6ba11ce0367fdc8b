package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// An Inspector reads the locks and records of one Redis. It keeps nothing between calls, and needs
// no Close. It is safe for concurrent use.
type Inspector struct {
	settings

	rdb   redis.UniversalClient
	names keyspace.Names
}

// New returns an Inspector of the locks that services keep with clients of the same Redis: one server,
// Sentinel or a cluster. Of a quorum it shows the votes on one server, and changes nothing that
// matters. New does no I/O. It returns an error for a nil client, for a client that core.New refuses,
// and for an option with a value that is not allowed.
func New(rdb redis.UniversalClient, opts ...Option) (*Inspector, error) {
	if rdb == nil {
		return nil, errors.New("reqlock: inspect: the redis client is nil")
	}
	if err := redisstore.CheckClient(rdb); err != nil {
		return nil, fmt.Errorf("reqlock: inspect: %w", err)
	}
	s := settings{prefix: "reqlock:", limit: defaultLimit, retention: defaultRetention}
	for _, opt := range opts {
		if err := opt(&s); err != nil {
			return nil, err
		}
	}
	if err := keyspace.CheckPrefix(s.prefix); err != nil {
		return nil, fmt.Errorf("reqlock: WithPrefix: the prefix %w", err)
	}
	if len(s.observers) == 0 {
		s.observers = append(s.observers, func(e core.Event) { core.SlogObserver(slog.Default())(e) })
	}
	return &Inspector{settings: s, rdb: rdb, names: keyspace.New(s.prefix)}, nil
}

// String hides the client.
func (*Inspector) String() string { return "reqlock.Inspector" }

// GoString returns the same as String, for %#v.
func (i *Inspector) GoString() string { return i.String() }

// masters returns the servers that have keys of the prefix.
func (i *Inspector) masters(ctx context.Context) ([]redis.UniversalClient, error) {
	ctx, cancel := context.WithTimeout(ctx, commandBound)
	defer cancel()
	oneSlot := i.names.Lock("k")
	if !keyspace.HasTag(oneSlot) {
		oneSlot = ""
	}
	return topology.Masters(ctx, i.rdb, oneSlot)
}

// masterOf returns the server that has the key.
func (i *Inspector) masterOf(ctx context.Context, name string) (redis.UniversalClient, error) {
	ctx, cancel := context.WithTimeout(ctx, commandBound)
	defer cancel()
	nodes, err := topology.Masters(ctx, i.rdb, name)
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

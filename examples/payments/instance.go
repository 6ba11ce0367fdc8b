package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// An instance is another process of a service, as far as its locks are concerned. A deploy stops
// it, or it loses its Redis, while the site goes on.
type instance struct {
	client client
	link   link // to Redis
	redis  *redis.Client
	locks  *core.Locker
	server *server
}

// another starts an instance of the service.
func (s *site) another(ctx context.Context) (*instance, error) {
	i := &instance{}
	i.redis = i.link.client(s.redis.Client.Options())
	var err error
	if i.locks, i.server, err = s.serve(ctx, i.redis, "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, i.redis.Close())
	}
	if i.client, err = s.Dial(i.server.Addr); err != nil {
		return nil, errors.Join(err, i.stop(ctx))
	}
	return i, nil
}

// close stops the instance, and its client.
func (i *instance) close(ctx context.Context) error {
	defer i.client.close()
	return i.stop(ctx)
}

// stop stops the instance as a deploy does: the server waits for its requests, and then the Locker
// for what it has to say to Redis.
func (i *instance) stop(ctx context.Context) error {
	return errors.Join(i.server.Stop(ctx), i.locks.Close(ctx), i.redis.Close())
}

package main

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/core"
)

// An instance is another process of a service, as far as its locks are concerned: a deploy stops
// it while the site goes on.
type instance struct {
	client client
	locks  *core.Locker
	server *server
}

// another starts an instance of the service.
func (s *site) another(ctx context.Context) (*instance, error) {
	locks, server, err := s.serve(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	client, err := s.Dial(server.Addr)
	if err != nil {
		return nil, errors.Join(err, server.Stop(ctx), locks.Close(ctx))
	}
	return &instance{client, locks, server}, nil
}

// close stops the instance as a deploy does: the server waits for its requests, and then the Locker
// for their releases.
func (i *instance) close(ctx context.Context) error {
	err := errors.Join(i.server.Stop(ctx), i.locks.Close(ctx))
	i.client.close()
	return err
}

// Package stack creates what a service with reqlock needs: clients and a Locker.
package stack

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A Stack is a client of Redis, or one for each server of a quorum, and a Locker.
type Stack struct {
	Locks    *core.Locker
	Commands *wire.Counter // counts the sent commands

	clients []redis.UniversalClient
}

// Open creates a stack for the Redis at addr. The client respects deadlines, as reqlock
// recommends. It connects when it is used.
func Open(addr string, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	return On(wire.NewClient([]string{addr}, commands, wire.Deadlines), commands, options...)
}

// On creates a stack with a client, and closes the client later.
func On(client redis.UniversalClient, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	locks, err := core.New(client, options...)
	return newStack(locks, err, commands, client)
}

// OnQuorum creates a stack with a client for each server of a quorum, and closes them
// later.
func OnQuorum(clients []redis.UniversalClient, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	locks, err := core.NewQuorum(clients, options...)
	return newStack(locks, err, commands, clients...)
}

// newStack closes the clients if there is no Locker.
func newStack(locks *core.Locker, err error, commands *wire.Counter, clients ...redis.UniversalClient) (*Stack, error) {
	if err != nil {
		return nil, errors.Join(err, wire.Close(clients))
	}
	return &Stack{locks, commands, clients}, nil
}

// closeTime is how long Close waits for the release of locks.
const closeTime = 2 * time.Second

// Close closes the Locker and its connections. No lock may be held: otherwise it waits for
// 2 s and returns an error. On a nil Stack it does nothing.
func (s *Stack) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(s.Locks.Close(ctx), wire.Close(s.clients))
}

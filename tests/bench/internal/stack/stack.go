// Package stack puts together what a service that uses reqlock stands on.
package stack

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

// A Stack is a client of Redis, or one for each server of a quorum, and a Locker on
// them.
type Stack struct {
	Locks    *core.Locker
	Commands *wire.Counter // counts what is sent

	clients []redis.UniversalClient
}

// Open makes a stack on the Redis at addr, with a client that heeds deadlines, as
// reqlock recommends. Connections come up when they are used.
func Open(addr string, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	return On(wire.NewClient([]string{addr}, commands, wire.Deadlines), commands, options...)
}

// On makes a stack on a client, which belongs to it from then on.
func On(client redis.UniversalClient, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	locks, err := core.New(client, options...)
	return newStack(locks, err, commands, client)
}

// OnQuorum makes a stack on a client for each server of a quorum. They belong to it
// from then on.
func OnQuorum(clients []redis.UniversalClient, commands *wire.Counter, options ...core.Option) (*Stack, error) {
	locks, err := core.NewQuorum(clients, options...)
	return newStack(locks, err, commands, clients...)
}

// newStack closes the clients if there is no Locker on them.
func newStack(locks *core.Locker, err error, commands *wire.Counter, clients ...redis.UniversalClient) (*Stack, error) {
	if err != nil {
		return nil, errors.Join(err, wire.Close(clients))
	}
	return &Stack{locks, commands, clients}, nil
}

// closeTime is how long Close waits for locks to be given back.
const closeTime = 2 * time.Second

// Close ends the Locker and its connections, when nothing is locked. After a
// failure, when something still is, it waits for 2 s and returns an error. It
// does nothing on a nil Stack.
func (s *Stack) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(s.Locks.Close(ctx), wire.Close(s.clients))
}

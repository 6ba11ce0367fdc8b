package storetest

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// EachCommand is a hook that is told each command that is sent alone.
type EachCommand func(redis.Cmder)

func (EachCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c EachCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd)
		return next(ctx, cmd)
	}
}

func (EachCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// BeforeEach calls a function ahead of each command that is sent alone.
type BeforeEach struct {
	OpenCircuit
	Before func(ctx context.Context)
}

func (c BeforeEach) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Before(ctx)
		return next(ctx, cmd)
	}
}

func (c BeforeEach) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// OpenCircuit is a hook that keeps all commands back, as circuit breakers do.
type OpenCircuit struct{}

var ErrOpen = errors.New("the circuit is open")

func (OpenCircuit) DialHook(next redis.DialHook) redis.DialHook { return next }

func (OpenCircuit) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return ErrOpen }
}

func (OpenCircuit) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return ErrOpen }
}

// ServerError is an error as go-redis reports one that the server sent.
type ServerError string

func (e ServerError) Error() string { return string(e) }

func (ServerError) RedisError() {}

package storetest

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// EachCommand is a hook that receives each command that is sent alone.
type EachCommand func(redis.Cmder)

// DialHook changes nothing.
func (EachCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook calls the function before a command that is sent alone.
func (c EachCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing.
func (EachCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// BeforeEach is a hook that calls a function before each command outside a pipeline.
type BeforeEach struct {
	OpenCircuit
	Before func(ctx context.Context)
}

// ProcessHook calls the function before a command that is sent alone.
func (c BeforeEach) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Before(ctx)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing.
func (c BeforeEach) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// OpenCircuit is a hook that sends no command, as an open circuit breaker.
type OpenCircuit struct{}

// ErrOpen is the error of a command that OpenCircuit does not send.
var ErrOpen = errors.New("the circuit is open")

// DialHook changes nothing.
func (OpenCircuit) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook returns ErrOpen.
func (OpenCircuit) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return ErrOpen }
}

// ProcessPipelineHook returns ErrOpen.
func (OpenCircuit) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return ErrOpen }
}

// ServerError is an error of a server, as go-redis returns it.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// RedisError marks the error as one that a server sent.
func (ServerError) RedisError() {}

package command

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A Command is what go-redis sends and reads for one send of an exchange. It is
// safe to run twice, but go-redis must not run it twice by itself; see the
// package comment.
type Command interface {
	redis.Cmder
	// Reply returns what the server said, or why it was not asked. whole is why
	// the batch failed as a whole, if it did.
	Reply(whole error) (value any, err error)
}

// keyStep is how many arguments lie between two keys. A client of a cluster that
// is not told asks a node for all that it knows of commands (COMMAND), which takes
// a right and, where that node is silent, holds up everybody.
const keyStep = 1

// Generic is a command with any reply.
type Generic struct{ redis.Cmd }

// New returns a command whose key stands at keyPos, for the routing of a
// cluster client.
func New(keyPos int8, args []any) *Generic {
	c := &Generic{}
	c.Reset(keyPos, args)
	return c
}

// Reset makes the command anew, so that nothing of the last one stays.
func (c *Generic) Reset(keyPos int8, args []any) {
	c.Cmd = *redis.NewCmd(context.Background(), args...)
	c.SetFirstKeyPos(keyPos)
	c.SetStepCount(keyStep)
}

// NoRetry forbids go-redis to send the command again.
func (*Generic) NoRetry() bool { return true }

// The client does not always tell a command that its batch has failed: a
// connection that was refused, or a hook that keeps commands back, leaves it
// without a value and without an error. A nil reply always comes as redis.Nil, and
// as nothing else: an error that only has one in it is that of another command, by
// which the client has looked for the master.
func (c *Generic) Reply(whole error) (any, error) {
	value, err := c.Result()
	switch {
	case err == redis.Nil: //nolint:errorlint // see above: it would be taken for a grant
		return NilReply{}, nil
	case err == nil && value == nil:
		return nil, whole // without one, nobody believes the nil
	case isWhole(value):
		return value, nil
	default:
		return value, err
	}
}

// isWhole reports whether a value was read to its end. The client gives the error
// of a batch to all its commands that have none of their own, also to those whose
// reply had come before the connection broke; only of the one in which it broke
// there may be a part, an empty one.
func isWhole(value any) bool {
	switch value := value.(type) {
	case int64:
		return true
	case string:
		return value != ""
	case []any:
		return len(value) > 0
	default:
		return false
	}
}

// SetNX is SET with NX and without GET. Its reply is whether the key was set: a
// nil is no error here, so go-redis does not look into it for ways to go on.
type SetNX struct{ redis.BoolCmd }

// WasSet is the answer to it.
type WasSet bool

// Reset makes the command anew.
func (c *SetNX) Reset(args []any) {
	c.BoolCmd = *redis.NewBoolCmd(context.Background(), args...)
	c.SetFirstKeyPos(1)
	c.SetStepCount(keyStep)
}

// NoRetry forbids go-redis to send the command again.
func (*SetNX) NoRetry() bool { return true }

// A command that was not sent looks as if it had been refused.
func (c *SetNX) Reply(whole error) (any, error) {
	set, err := c.Result()
	if set {
		return WasSet(true), nil
	}
	if err == nil && whole != nil && IsTransport(whole) {
		return nil, whole
	}
	return WasSet(false), err
}

// NilReply is the value that the server did not have. A nil value is none: it is
// what is left of an error that a hook of the client's has swallowed.
type NilReply struct{}

// Package command is one command that go-redis sends for this project, its reply, and the
// meaning of its error.
//
// go-redis repeats a command by itself when a reply is lost. A caller would then be refused by
// its own lock: the second SET NX finds the key that the first one has set. So each command
// here forbids go-redis to repeat it. Package pipeline sends it again, at most once.
//
// NewFault classifies an error. It also removes the user's name and the arguments of the
// command from the text: they may be keys and tokens.
//
// WAIT counts the replicas that have what its own connection has written. Replicas is the
// number of replicas that must acknowledge a write, and the time that they have.
package command

import (
	"context"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Command is one command as go-redis sends it, with its reply. It is safe to run twice,
// but go-redis must not repeat it: see the package comment.
type Command interface {
	redis.Cmder
	// Reply returns the server's reply, or the error of the server, or the reason why
	// there is no reply. batchErr is the error of the batch as a whole, or nil. A nil
	// value with a nil error never means success: a nil reply is a NilReply.
	Reply(batchErr error) (value any, err error)
}

// keyStep is the distance between two keys in the arguments. If it is not set, a client of
// a cluster sends COMMAND to a node to learn it. That needs one more right, and delays all
// commands if the node is silent.
const keyStep = 1

// Generic is a command with a reply of any type.
type Generic struct{ redis.Cmd }

// New returns a command. keyPos is the index of its first key in args, which a cluster's
// client needs for routing; 0 is no key.
func New(keyPos int8, args []any) *Generic {
	c := &Generic{}
	c.Reset(keyPos, args)
	return c
}

// Reset makes it a new command, which keeps nothing of the last one.
func (c *Generic) Reset(keyPos int8, args []any) {
	c.Cmd = *redis.NewCmd(context.Background(), args...)
	c.SetFirstKeyPos(keyPos)
	c.SetStepCount(keyStep)
}

// NoRetry forbids go-redis to send the command again.
func (*Generic) NoRetry() bool { return true }

// Reply is documented at Command.
//
// A failed batch does not set an error on each command: after a refused connection, or a
// hook that drops commands, a command has neither a value nor an error. A nil reply is
// always redis.Nil itself. An error that wraps redis.Nil belongs to another command, by
// which the client has asked for the master.
func (c *Generic) Reply(batchErr error) (any, error) {
	value, err := c.Result()
	switch {
	case err == redis.Nil: //nolint:errorlint // see above: a wrapped one must not count as a grant
		return NilReply{}, nil
	case err == nil && value == nil:
		return nil, batchErr
	case isComplete(value):
		return value, nil
	default:
		return value, err
	}
}

// isComplete reports whether a value was read to its end. The client sets the error of a
// batch on all its commands without an error of their own, also on those with a reply from
// before the connection broke. Only the reply in which it broke may be a part, and that
// part is empty.
func isComplete(value any) bool {
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

// SetNX is SET with NX and without GET. A nil reply is no error of a redis.BoolCmd, so
// go-redis does not inspect it for a redirection, which makes a refusal cheap.
type SetNX struct{ redis.BoolCmd }

// WasSet is the reply to SetNX: whether the key was set.
type WasSet bool

// Reset makes it a new command, which keeps nothing of the last one.
func (c *SetNX) Reset(args []any) {
	c.BoolCmd = *redis.NewBoolCmd(context.Background(), args...)
	c.SetFirstKeyPos(1)
	c.SetStepCount(keyStep)
}

// NoRetry forbids go-redis to send the command again.
func (*SetNX) NoRetry() bool { return true }

// Reply is documented at Command. A command that was not sent has the same value as one
// that the server refused, so the error of the batch decides.
func (c *SetNX) Reply(batchErr error) (any, error) {
	set, err := c.Result()
	if set {
		return WasSet(true), nil
	}
	if err == nil && batchErr != nil && IsTransport(batchErr) {
		return nil, batchErr
	}
	return WasSet(false), err
}

// NilReply is the nil reply of a server. A nil value is not a reply: it is left by a hook
// of the client that drops errors.
type NilReply struct{}

// Exec calls a function of go-redis that sends commands and reads their replies. go-redis panics if
// a reply has lost bytes, so that its length has too many digits. Then the error says that the
// reply cannot be parsed: see IsTransport. Any other panic is that of a hook of the client, and
// goes on. A cluster's client reads the replies of a pipeline on goroutines of its own, whose panics
// nobody else can end.
func Exec(send func() error) (err error) {
	defer func() {
		caught := recover()
		failure, _ := caught.(runtime.Error)
		switch {
		case failure != nil && strings.Contains(failure.Error(), "makeslice"):
			err = errUnreadable
		case caught != nil:
			panic(caught)
		}
	}()
	return send()
}

// Receive is conn.Receive. go-redis panics if a server, or a proxy before it, sends an array
// that is no message. Then the error is an *UnexpectedReplyError: see IsTransport.
func Receive(ctx context.Context, conn *redis.PubSub) (reply any, err error) {
	defer func() {
		if recover() != nil {
			reply, err = nil, UnexpectedReply([]any{})
		}
	}()
	return conn.Receive(ctx)
}

// InfoFields returns the fields of a reply to INFO, by their names.
func InfoFields(reply string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(reply) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

package command

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// DeleteIfEqual deletes a key if it has a value, and then says whether a list has elements. It is
// two commands, DELIFEQ and LLEN, which are sent together: see Second. Valkey has DELIFEQ since
// version 9.0. Without a script, the two take the server a tenth of the time.
type DeleteIfEqual struct {
	redis.IntCmd
	second length
	args   [5]any
}

// A Deletion is the reply to DeleteIfEqual. One byte becomes an any without an allocation.
type Deletion uint8

// The results of DeleteIfEqual.
const (
	NotDeleted    Deletion = iota
	Deleted                // and the list is empty
	DeletedBefore          // and the list has elements, or may have
)

// Reset makes it a new command, which keeps nothing of the last one.
func (c *DeleteIfEqual) Reset(key, value, list any) {
	c.args = [...]any{"delifeq", key, value, "llen", list}
	c.IntCmd = *redis.NewIntCmd(context.Background(), c.args[:3:3]...)
	c.second.IntCmd = *redis.NewIntCmd(context.Background(), c.args[3:]...)
	for _, cmd := range [...]*redis.IntCmd{&c.IntCmd, &c.second.IntCmd} {
		cmd.SetFirstKeyPos(1)
		cmd.SetStepCount(keyStep)
	}
}

// NoRetry forbids go-redis to send the command again.
func (*DeleteIfEqual) NoRetry() bool { return true }

// Second returns the command that is to be sent directly after this one, on the same connection.
func (c *DeleteIfEqual) Second() redis.Cmder { return &c.second }

// length is the second command.
type length struct{ redis.IntCmd }

// NoRetry forbids go-redis to send the command again.
func (*length) NoRetry() bool { return true }

// Reply is documented at Command. A command that was not sent has the same value as one that has
// deleted nothing, so the error of the batch decides. If the server refuses only the second command,
// the list may have elements.
func (c *DeleteIfEqual) Reply(batchErr error) (any, error) {
	deleted, err := c.Result()
	elements, lengthErr := c.second.Result()
	switch {
	case err != nil:
		return nil, err
	case lengthErr != nil && IsLost(lengthErr):
		return nil, lengthErr
	case batchErr != nil && IsTransport(batchErr):
		return nil, batchErr
	}
	switch {
	case deleted == 0:
		return NotDeleted, nil
	case elements == 0 && lengthErr == nil:
		return Deleted, nil
	default:
		return DeletedBefore, nil
	}
}

package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxBatch is how many commands leave together at most.
const maxBatch = 128

// A batch is the commands that leave together. It serves again for those that
// leave after them.
type batch struct {
	sends   []*send
	notices []notice
	begun   time.Time
	left    bool // behind

	// Most batches are of one command.
	oneSend   [1]*send
	oneNotice [1]notice
}

func newBatch() *batch {
	b := &batch{}
	b.sends, b.notices = b.oneSend[:0], b.oneNotice[:0]
	return b
}

// unload makes room for the next commands.
func (b *batch) unload() {
	clear(b.sends)
	clear(b.notices)
	b.sends, b.notices = b.sends[:0], b.notices[:0]
}

// fly sends the batch and reads its replies. A nil reply is absent and no error.
func (b *batch) fly(rdb redis.UniversalClient) {
	ctx := &by{Context: context.Background()}
	for _, s := range b.sends {
		if s.of.deadline.After(ctx.deadline) {
			ctx.deadline = s.of.deadline
		}
	}
	process := rdb.Process
	var pipe redis.Pipeliner
	if len(b.sends) > 1 {
		pipe = rdb.Pipeline()
		process = pipe.Process
	}
	sent := time.Now()
	for _, s := range b.sends {
		s.cmd = single{redis.NewCmd(ctx, s.command.args...)}
		s.cmd.SetFirstKeyPos(s.command.keyPos)
		_ = process(ctx, s.cmd)
	}
	var whole error // why the batch failed as a whole
	if pipe != nil {
		_, whole = pipe.Exec(ctx)
	}
	for _, s := range b.sends {
		s.reply = replyOf(s.cmd, whole)
		s.reply.sent = sent
	}
}

// replyOf returns what the server said to a command, or why it was not asked.
// The client does not always tell a command that its batch has failed: a
// connection that was refused, or a hook that keeps commands back, leaves it
// without a value and without an error. A nil reply always comes as redis.Nil.
func replyOf(cmd single, whole error) reply {
	value, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return reply{value: absent{}}
	case err == nil && value == nil:
		return reply{err: whole} // without one, nobody believes the nil
	default:
		return reply{value: value, err: err}
	}
}

// by is a context that has a deadline and no timer: enough for those parts of a
// client that look at deadlines. Nobody waits for its end; see lane.
type by struct {
	context.Context
	deadline time.Time
}

// Deadline returns the deadline.
func (b *by) Deadline() (time.Time, bool) { return b.deadline, true }

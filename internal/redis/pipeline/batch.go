package pipeline

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// width is how many commands leave together at most. It is a variable, and a text,
// for the linker alone: tests run with lanes of other widths.
var width = "128"

// widthOf returns the width as a number.
func widthOf(width string) int {
	n, err := strconv.Atoi(width)
	if err != nil || n < 1 {
		panic("reqlock: redisstore: linked with a width of " + width)
	}
	return n
}

// A batch is the commands that leave together. It serves again for those that
// leave after them.
type batch struct {
	sends   []*send
	cmds    []redis.Cmder
	notices []completion
	begun   time.Time // and sent, for the validity of what it is granted
	left    bool      // behind
	leash   *leash    // its leader's, while it has one
}

// unload makes room for the next commands, and frees the exchanges that are
// over.
func (b *batch) unload() {
	for i := range b.notices {
		if n := &b.notices[i]; n.over() {
			n.of.Free()
		}
	}
	clear(b.sends)
	clear(b.cmds)
	clear(b.notices)
	b.sends, b.cmds, b.notices = b.sends[:0], b.cmds[:0], b.notices[:0]
}

// context returns the one under which the batch is sent.
func (b *batch) context() context.Context {
	if b.leash != nil {
		return b.leash
	}
	return context.Background()
}

// fly sends so many commands of the batch, the first ones, and reads their replies.
func (b *batch) fly(rdb redis.UniversalClient, n int) {
	if n == 0 {
		return
	}
	ctx, sends := b.context(), b.sends[:n]
	var whole error // why the batch failed as a whole
	if n == 1 {
		whole = rdb.Process(ctx, sends[0].command)
	} else {
		for _, s := range sends {
			b.cmds = append(b.cmds, s.command)
		}
		pipe := rdb.Pipeline()
		_ = pipe.BatchProcess(ctx, b.cmds...) // it only gathers them
		_, whole = pipe.Exec(ctx)
	}
	for _, s := range sends {
		value, err := s.command.Reply(whole)
		s.reply = Reply{Value: value, Err: err, Sent: b.begun}
	}
}

// ground answers the commands of the batch that are not sent, all but the first n.
func (b *batch) ground(n int, why error) {
	for _, s := range b.sends[n:] {
		s.reply = Reply{Err: command.Unsent(why), Sent: b.begun}
	}
}

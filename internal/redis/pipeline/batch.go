package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A batch is the commands that are sent together. It is used again for later commands.
type batch struct {
	sends       []*send
	cmds        []redis.Cmder
	joint       command.Joint
	completions []completion
	begun       time.Time // before the send: leases count from it
	abandoned   bool
	// abandonedAfter is how many batches of the lane had been in time when it was abandoned.
	abandonedAfter int
	inline         *inlineContext // while a caller runs the batch
}

// reset empties the batch, and frees the calls that are over.
func (b *batch) reset() {
	for i := range b.completions {
		if d := &b.completions[i]; d.isReusable() {
			d.call.Free()
		}
	}
	clear(b.sends)
	clear(b.cmds)
	clear(b.completions)
	b.joint.Clear()
	b.sends, b.cmds, b.completions = b.sends[:0], b.cmds[:0], b.completions[:0]
}

// isInTime reports whether the batch, whose replies had arrived at now, has served a call that
// still waits, and has taken less than a congestionPause: some calls wait for long.
func (b *batch) isInTime(now time.Time) bool {
	return now.Sub(b.begun) < congestionPause && slices.ContainsFunc(b.sends, func(s *send) bool {
		return !s.call.settled && s.reply.isServed()
	})
}

// context returns the context that the batch is sent with.
func (b *batch) context() context.Context {
	if b.inline != nil {
		return b.inline
	}
	return context.Background()
}

// exec sends the first n commands of the batch, and reads their replies. joins says that commands may
// be sent as a Joint.
func (b *batch) exec(rdb redis.UniversalClient, n int, joins bool) {
	if n == 0 {
		return
	}
	ctx, sends := b.context(), b.sends[:n]
	for _, s := range sends {
		if joins && b.joint.Add(s.command) {
			continue
		}
		b.cmds = append(b.cmds, s.command)
		if c, ok := s.command.(*command.DeleteIfEqual); ok {
			b.cmds = append(b.cmds, c.Second())
		}
	}
	b.cmds = b.joint.AppendTo(b.cmds)
	batchErr := command.Exec(func() error {
		if len(b.cmds) == 1 {
			return rdb.Process(ctx, b.cmds[0])
		}
		pipe := rdb.Pipeline()
		_ = pipe.BatchProcess(ctx, b.cmds...) // it sends nothing yet
		_, err := pipe.Exec(ctx)
		return err
	})
	b.joint.Receive(batchErr)
	for _, s := range sends {
		value, err := s.command.Reply(batchErr)
		s.reply = Reply{Value: value, Err: err, Sent: b.begun}
	}
}

// failUnsent gives an error to the commands of the batch that are not sent: all except the
// first n.
func (b *batch) failUnsent(n int, why error) {
	for _, s := range b.sends[n:] {
		s.reply = Reply{Err: command.Unsent(why), Sent: b.begun}
	}
}

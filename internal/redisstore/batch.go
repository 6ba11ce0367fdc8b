package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxBatch is how many commands leave together at most.
const maxBatch = 128

// A batch is the commands that leave together. It serves again for those that
// leave after them.
type batch struct {
	sends   []*send
	cmds    []redis.Cmder
	notices []notice
	begun   time.Time // and sent, for the validity of what it is granted
	left    bool      // behind
	by      by
	end     chan struct{} // closed where the leader is let go; see lead
}

// unload makes room for the next commands, and frees the exchanges that are
// over.
func (b *batch) unload() {
	for i := range b.notices {
		if n := &b.notices[i]; n.over() {
			n.of.free()
		}
	}
	clear(b.sends)
	clear(b.cmds)
	clear(b.notices)
	b.sends, b.cmds, b.notices = b.sends[:0], b.cmds[:0], b.notices[:0]
}

// fly sends the batch and reads its replies.
func (b *batch) fly(rdb redis.UniversalClient) {
	b.by.deadline = time.Time{}
	for _, s := range b.sends {
		if s.of.deadline.After(b.by.deadline) {
			b.by.deadline = s.of.deadline
		}
	}
	var whole error // why the batch failed as a whole
	if len(b.sends) == 1 {
		whole = rdb.Process(&b.by, b.sends[0].command)
	} else {
		for _, s := range b.sends {
			b.cmds = append(b.cmds, s.command)
		}
		pipe := rdb.Pipeline()
		_ = pipe.BatchProcess(&b.by, b.cmds...) // it only gathers them
		_, whole = pipe.Exec(&b.by)
	}
	for _, s := range b.sends {
		value, err := s.command.answer(whole)
		s.reply = reply{value: value, err: err, sent: b.begun}
	}
}

// by is a context that has a deadline and no timer: enough for those parts of a
// client that look at deadlines. Its end is for those that wait for a
// connection, where the lane sees to it: see lead.
type by struct {
	deadline time.Time
	over     chan struct{} // nil where nobody waits for the end
}

// Deadline returns the deadline.
func (b *by) Deadline() (time.Time, bool) { return b.deadline, true }

// Done returns a channel that is closed at the end.
func (b *by) Done() <-chan struct{} { return b.over }

// Err returns errNoConnection after the end.
func (b *by) Err() error {
	select {
	case <-b.over:
		return errNoConnection
	default:
		return nil
	}
}

// Value returns nil: a batch is of many callers.
func (*by) Value(any) any { return nil }

var _ context.Context = (*by)(nil)

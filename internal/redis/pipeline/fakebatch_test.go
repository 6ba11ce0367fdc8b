package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A fakeServer is the hook that passes the commands for a server to the test.
type fakeServer struct {
	storetest.OpenCircuit
	*fake
	address string // "" for all servers of a cluster
}

// ProcessHook passes a command that is sent alone.
func (s fakeServer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return s.run(ctx, []redis.Cmder{cmd}) }
}

// ProcessPipelineHook passes the commands of a pipeline.
func (s fakeServer) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return s.run
}

func (s fakeServer) run(ctx context.Context, cmds []redis.Cmder) error {
	b := &fakeBatch{address: s.address, ctx: ctx, cmds: slices.Clone(cmds), at: s.elapsed(), ended: make(chan func() error, 1)}
	s.batches <- b
	select {
	case end := <-b.ended:
		return end()
	case <-s.over:
		return b.fail(errOver)
	}
}

// A fakeBatch is the commands that were sent together to a server.
type fakeBatch struct {
	address string
	ctx     context.Context
	cmds    []redis.Cmder
	at      time.Duration // since the test began
	ended   chan func() error
}

// names returns the first argument of each GET, and the names of the other commands.
func (b *fakeBatch) names() (names []string) {
	for _, cmd := range b.cmds {
		if cmd.Name() == "get" {
			names = append(names, fmt.Sprint(cmd.Args()[1]))
		} else {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// reply replies to each command, with an error or a value.
func (b *fakeBatch) reply(replies ...any) {
	b.ended <- func() (first error) {
		for i, cmd := range b.cmds {
			switch reply := replies[i].(type) {
			case error:
				cmd.SetErr(reply)
				if first == nil {
					first = reply
				}
			default:
				cmd.(*command.Generic).SetVal(reply)
			}
		}
		return first
	}
}

// replyAll replies with the value to all commands.
func (b *fakeBatch) replyAll(value any) {
	b.reply(slices.Repeat([]any{value}, len(b.cmds))...)
}

// breakDown ends the batch without any reply.
func (b *fakeBatch) breakDown(err error) { b.ended <- func() error { return b.fail(err) } }

func (b *fakeBatch) fail(err error) error {
	for _, cmd := range b.cmds {
		cmd.SetErr(err)
	}
	return err
}

// panics makes the hook of the client panic.
func (b *fakeBatch) panics() { b.ended <- func() error { panic("in a hook") } }

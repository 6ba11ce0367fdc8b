package redisstore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// chance returns true with a probability in percent.
func chance(percent int) bool { return rand.IntN(100) < percent }

// randomFaults is a hook that fails some commands with io.EOF. The server runs them before
// that, later, or never.
type randomFaults struct {
	storetest.OpenCircuit
	direct        *redis.Client // without the hook
	begin         script.Script
	delayed       sync.WaitGroup // the commands that run later
	late, lost    atomic.Int64
	delayedBegins sync.Map // the tokens of begins that run later
}

func (m *randomFaults) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !chance(9) {
			return next(ctx, cmd)
		}
		return m.fail([]redis.Cmder{cmd})
	}
}

func (m *randomFaults) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !chance(9) {
			return next(ctx, cmds)
		}
		return m.fail(cmds)
	}
}

// fail fails the commands, and runs them now, later or never.
func (m *randomFaults) fail(cmds []redis.Cmder) error {
	copies := make([][]any, len(cmds)) // the store uses the arguments again
	for i, cmd := range cmds {
		for _, arg := range cmd.Args() {
			copies[i] = append(copies[i], fmt.Sprint(arg))
		}
		cmd.SetErr(io.EOF)
	}
	run := func() {
		for _, args := range copies {
			_ = m.direct.Do(context.Background(), args...).Err()
		}
	}
	switch rand.IntN(3) {
	case 0:
		m.lost.Add(1)
		run()
	case 1:
		m.lost.Add(1)
	case 2:
		m.late.Add(1)
		m.recordDelayedBegins(copies)
		m.delayed.Go(func() {
			time.Sleep(rand.N(150 * time.Millisecond)) // the delay of the network
			run()
		})
	}
	return io.EOF
}

// recordDelayedBegins records the tokens of begins among commands that run later.
func (m *randomFaults) recordDelayedBegins(copies [][]any) {
	for _, args := range copies {
		if slices.Contains([]any{m.begin.SHA, m.begin.Source}, args[1]) {
			keys := int(args[2].(string)[0] - '0')
			m.delayedBegins.Store(args[3+keys], true)
		}
	}
}

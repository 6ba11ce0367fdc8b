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

// chance is true so many times in a hundred.
func chance(percent int) bool { return rand.IntN(100) < percent }

// mishaps is a hook that answers some commands with a connection that broke. They
// have run all the same, or run later, or never.
type mishaps struct {
	storetest.OpenCircuit
	direct     *redis.Client // without it
	begin      script.Script
	behind     sync.WaitGroup // what runs later
	late, lost atomic.Int64
	strayed    sync.Map // the tokens of which a begin runs later
}

func (m *mishaps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !chance(9) {
			return next(ctx, cmd)
		}
		return m.fail([]redis.Cmder{cmd})
	}
}

func (m *mishaps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !chance(9) {
			return next(ctx, cmds)
		}
		return m.fail(cmds)
	}
}

// fail lets the commands fail: after they have run, or before they run, if they
// ever do.
func (m *mishaps) fail(cmds []redis.Cmder) error {
	copies := make([][]any, len(cmds)) // the arguments serve again
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
		m.stray(copies)
		m.behind.Go(func() {
			time.Sleep(rand.N(150 * time.Millisecond)) // the network holds them
			run()
		})
	}
	return io.EOF
}

// stray notes the tokens of which a begin runs later.
func (m *mishaps) stray(copies [][]any) {
	for _, args := range copies {
		if slices.Contains([]any{m.begin.SHA, m.begin.Source}, args[1]) {
			keys := int(args[2].(string)[0] - '0')
			m.strayed.Store(args[3+keys], true)
		}
	}
}

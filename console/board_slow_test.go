package console

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Lists that take too long are shown as far as they go.
func TestASlowListIsTruncated(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	pipe := rdb.Pipeline()
	for n := range 5000 {
		pipe.Set(t.Context(), fmt.Sprint("reqlock:", n), "x", time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, err := inspect.New(rdb, inspect.WithPause(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard(i)
	b.bound = 100 * time.Millisecond
	suite.Eventually(t, "the lists have what was found in their time", func() bool {
		b.bound, b.next = 2*b.bound, time.Time{}
		v := b.look(t.Context())
		return v.failed == nil && v.lists.locks.Truncated && v.lists.unknown.Truncated && len(v.lists.rows) > 0 && len(v.lists.rows) < 5000
	})
}

// A hanging server replies to nothing while it hangs.
type hanging struct{ hangs bool }

func (h *hanging) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if h.hangs {
			<-ctx.Done()
			return ctx.Err()
		}
		return next(ctx, commands)
	}
}

// A list for which there was no reply at all has failed: the last one stays.
func TestAListWithoutAReplyDoesNotReplaceTheLastOne(t *testing.T) {
	t.Parallel()
	rdb, h := redistest.Reuse(t).Client(t), &hanging{}
	if err := rdb.Set(t.Context(), "reqlock:k", "x", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	i, err := inspect.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard(i)
	b.look(t.Context())
	rdb.AddHook(h)
	h.hangs, b.bound, b.next = true, 50*time.Millisecond, time.Time{}
	if v := b.look(t.Context()); v.failed == nil || len(v.lists.rows) != 1 {
		t.Errorf("%v: %d rows", v.failed, len(v.lists.rows))
	}
}

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
	gone, leave := context.WithCancel(t.Context())
	leave()
	b.next = time.Time{}
	if v := b.look(gone); v.failed != nil {
		t.Errorf("the list ends with the viewer for whom it is made: %v", v.failed)
	}
	rdb.AddHook(h)
	h.hangs, b.bound, b.next = true, 50*time.Millisecond, time.Time{}
	if v := b.look(t.Context()); v.failed == nil || len(v.lists.rows) != 1 {
		t.Errorf("%v: %d rows", v.failed, len(v.lists.rows))
	}
}

func TestListsBeginWithWhatNeedsAnOperator(t *testing.T) {
	t.Parallel()
	l := lists{keys: make(map[string]inspect.Key)}
	for _, age := range []time.Duration{1, 3, 2} {
		l.unknown.Records = append(l.unknown.Records, inspect.Record{Age: age})
	}
	l.arrange(inspect.Page{Locks: []inspect.Lock{{Waiting: 1}, {Waiting: 3}, {Waiting: 2}}})
	if l.unknown.Records[0].Age != 3 || l.unknown.Records[2].Age != 1 || l.rows[0].Waiting != 3 || l.rows[2].Waiting != 1 {
		t.Errorf("%+v", l)
	}
}

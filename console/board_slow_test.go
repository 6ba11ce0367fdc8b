package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
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
	b.bound = 300 * time.Millisecond
	if v := b.look(t.Context()); v.failed != nil || !v.lists.locks.Truncated || !v.lists.unknown.Truncated || len(v.lists.rows) == 0 || len(v.lists.rows) == 5000 {
		t.Errorf("%v: %d rows", v.failed, len(v.lists.rows))
	}
}

package exclusion

import (
	"path/filepath"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// open maps one memory twice, like two processes.
func open(t *testing.T) (one, other *Memory) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory")
	one, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if other, err = Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close(); _ = other.Close() })
	return one, other
}

func TestHandoffsAreToAnotherHolder(t *testing.T) {
	one, other := open(t)
	for i, c := range []struct {
		memory  *Memory
		holder  int64
		handoff bool
	}{{one, 1, true}, {one, 1, false}, {other, 2, true}, {one, 1, true}} {
		if got := c.memory.Enter(c.holder); got != c.handoff {
			t.Errorf("turn %d: handoff is %v", i, got)
		}
		c.memory.Leave(c.holder)
	}
	if got := one.Violations(4); got != 0 {
		t.Errorf("%d violations", got)
	}
}

func TestViolationsAreCounted(t *testing.T) {
	for _, test := range []struct {
		name  string
		run   func(one, other *Memory)
		taken int64
		want  int64
	}{
		{"a second holder", func(one, other *Memory) {
			one.Enter(1)
			other.Enter(2)
		}, 0, 1},
		{"a holder that another one overtakes", func(one, other *Memory) {
			one.Enter(1)
			other.Leave(2)
		}, 1, 1},
		{"lost turns", func(one, _ *Memory) {
			one.Enter(1)
			one.Leave(1)
		}, 3, 2},
		{"as many shared holders as allowed", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.EnterShared(2, 2)
			one.LeaveShared()
			one.EnterShared(3, 2)
		}, 0, 0},
		{"one shared holder too many", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.EnterShared(2, 2)
			one.EnterShared(3, 2)
		}, 0, 1},
		{"a writer beside a reader", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.Enter(2)
		}, 0, 1},
		{"a reader beside a writer", func(one, other *Memory) {
			other.Enter(2)
			one.EnterShared(1, 2)
		}, 0, 1},
		{"a reader after a writer", func(one, other *Memory) {
			other.Enter(2)
			other.Leave(2)
			one.EnterShared(1, 2)
		}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, other := open(t)
			test.run(one, other)
			if got := one.Violations(test.taken); got != test.want {
				t.Errorf("%d violations, want %d", got, test.want)
			}
		})
	}
}

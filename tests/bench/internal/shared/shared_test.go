package shared

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// open maps one memory twice, like two processes.
func open(t *testing.T) (one, other *Memory) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory")
	if err := Create(path); err != nil {
		t.Fatal(err)
	}
	views := make([]*Memory, 2)
	for i := range views {
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		views[i] = m
	}
	return views[0], views[1]
}

func TestTurnsAreNoViolation(t *testing.T) {
	one, other := open(t)
	for i, c := range []struct {
		memory  *Memory
		who     int64
		handoff bool
	}{{one, 1, true}, {one, 1, false}, {other, 2, true}, {one, 1, true}} {
		if got := c.memory.Enter(c.who); got != c.handoff {
			t.Errorf("turn %d: handoff is %v", i, got)
		}
		c.memory.Leave(c.who)
	}
	if got := one.Violations(4); got != 0 {
		t.Errorf("%d violations", got)
	}
}

func TestTwoHoldersAreSeen(t *testing.T) {
	one, other := open(t)
	one.Enter(1)
	other.Enter(2) // while the first is inside
	if got := one.Violations(0); got != 1 {
		t.Errorf("%d violations when the second comes in", got)
	}
	other.Leave(2)
	one.Leave(1)
	if got := one.Violations(2); got == 0 {
		t.Error("two were inside at once, and no violation was seen")
	}
}

func TestLostTurnsAreSeen(t *testing.T) {
	one, _ := open(t)
	one.Enter(1)
	one.Leave(1)
	if got := one.Violations(3); got != 2 {
		t.Errorf("%d violations for 2 turns that are missing", got)
	}
}

func TestSharedHoldersAreCounted(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(one, other *Memory)
		want int64
	}{
		{"within the limit", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.EnterShared(2, 2)
			one.LeaveShared()
			one.EnterShared(3, 2)
		}, 0},
		{"one too many", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.EnterShared(2, 2)
			one.EnterShared(3, 2)
		}, 1},
		{"a writer beside a reader", func(one, other *Memory) {
			one.EnterShared(1, 2)
			other.Enter(2)
		}, 1},
		{"a reader beside a writer", func(one, other *Memory) {
			other.Enter(2)
			one.EnterShared(1, 2)
		}, 1},
		{"a reader after a writer", func(one, other *Memory) {
			other.Enter(2)
			other.Leave(2)
			one.EnterShared(1, 2)
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, other := open(t)
			test.run(one, other)
			if got := one.Violations(0); got != test.want {
				t.Errorf("%d violations, want %d", got, test.want)
			}
		})
	}
}

func TestBarrierBeginsRoundsTogether(t *testing.T) {
	one, other := open(t)
	var workers sync.WaitGroup
	starts := make([][]time.Time, 2)
	for i, m := range []*Memory{one, other} {
		workers.Go(func() {
			for round := range 3 {
				start, err := m.Await(t.Context(), 2, round+1)
				if err != nil || time.Now().Before(start) {
					t.Errorf("round %d begins before %v: %v", round+1, start, err)
				}
				starts[i] = append(starts[i], start)
			}
		})
	}
	workers.Wait()
	for round := range 3 {
		if !starts[0][round].Equal(starts[1][round]) {
			t.Errorf("round %d begins at %v and at %v", round+1, starts[0][round], starts[1][round])
		}
		if round > 0 && !starts[0][round].After(starts[0][round-1]) {
			t.Errorf("round %d begins no later than the one before", round+1)
		}
	}
}

func TestBarrierEndsWithItsContext(t *testing.T) {
	one, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Await(ctx, 2, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Await returned %v", err)
	}
}

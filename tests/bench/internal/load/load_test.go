package load

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/exclusion"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// noLock is a lock that does not exclude.
type noLock struct{}

func (noLock) Lock(context.Context, string) (lock.Held, error) { return noLock{}, nil }
func (noLock) Release(context.Context) error                   { return nil }
func (noLock) Close() error                                    { return nil }

func TestTurnsAreCountedAndChecked(t *testing.T) {
	for _, c := range []struct {
		name       string
		shape      Shape
		locks      lock.Locker // nil for the channel
		violations bool
	}{
		{"a loop", Shape{}, nil, false},
		{"a burst", Shape{Burst: true}, nil, false},
		{"permits", Shape{Permits: 3}, nil, false},
		{"a lock that does not exclude", Shape{}, noLock{}, true},
		{"more permits than allowed", Shape{Permits: 3}, noLock{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory")
			memory, err := exclusion.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = memory.Close() }()
			j := &Job{Shape: c.shape, Lock: lock.Channel, Memory: path, Window: 50 * time.Millisecond, Rounds: 3}
			j.Processes, j.Goroutines, j.Section = 1, 8, time.Millisecond
			if err := j.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Close() }()
			if c.locks != nil {
				j.locks = []lock.Locker{c.locks}
			}
			result, err := j.Run(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			o := result.(*Outcome)
			if o.Acquired < 8 || o.Waits.Count != o.Acquired || len(o.Faults) > 0 || o.Starved > 0 ||
				o.AcquiredInTime > o.Acquired || o.HandoffsInTime > o.Handoffs || o.Handoffs > o.Acquired {
				t.Errorf("outcome: %+v", o)
			}
			if c.shape.Burst && (o.Acquired != 24 || len(o.Rounds) != 3) {
				t.Errorf("%d turns in %d rounds", o.Acquired, len(o.Rounds))
			}
			if got := memory.Violations(o.Acquired) > 0; got != c.violations {
				t.Errorf("violations are seen: %t", got)
			}
		})
	}
}

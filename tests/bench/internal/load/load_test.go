package load

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/exclusion"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

func TestMain(m *testing.M) { suite.Main(m) }

// outcomes returns those of two processes, whose rounds take 2 s and 1 s together.
func outcomes() []Outcome {
	start := time.Now()
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	all := []Outcome{
		{
			Acquired: 30, AcquiredInTime: 20, Handoffs: 15, HandoffsInTime: 10, Starved: 1, Faults: []string{"one"}, Commands: 60,
			Used:   measure.Usage{CPU: 30 * time.Microsecond, Allocations: 90},
			Rounds: []Round{{Start: start, LastGrant: second(1)}, {Start: second(4), LastGrant: second(5)}},
		},
		{
			Acquired: 10, AcquiredInTime: 10, Handoffs: 5, HandoffsInTime: 2, Starved: 2, Faults: []string{"other"}, Commands: 20,
			Used:   measure.Usage{CPU: 10 * time.Microsecond, Allocations: 30},
			Rounds: []Round{{Start: start, LastGrant: second(2)}, {Start: second(4), LastGrant: second(5)}},
		},
	}
	for i := range all {
		all[i].Waits = measure.NewHistogram()
		all[i].Waits.Record(time.Duration(i+1) * time.Microsecond)
	}
	return all
}

func TestFiguresAreOfAllProcesses(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape Shape
		want  map[string]float64 // durations in microseconds
	}{
		{"free", Shape{OwnKeys: true}, map[string]float64{
			"locks/s": 15, "commands/lock": 2, "max": 2, "client CPU/lock": 1, "Redis CPU/lock": 2, "allocs/lock": 3,
		}},
		{"contended", Shape{}, map[string]float64{
			"hand-offs/s": 6, "locks/s": 15, "commands/hand-off": 4, "wait max": 2, "starved": 3,
			"client CPU/lock": 1, "Redis CPU/lock": 2, "allocs/lock": 3,
		}},
		// 20 locks and 10 hand-offs in each round, and the median round takes 1.5 s.
		{"burst", Shape{Burst: true}, map[string]float64{"hand-offs/s": 20 / 3., "locks/s": 40 / 3.}},
	} {
		t.Run(c.name, func(t *testing.T) {
			figures := c.shape.figures(sum(outcomes()), 2*time.Second, 80*time.Microsecond)
			for name, want := range c.want {
				i := slices.IndexFunc(figures, func(f report.Figure) bool { return f.Name == name })
				if i < 0 || max(figures[i].Value-want, want-figures[i].Value) > 1e-9 {
					t.Errorf("%s is not %v in %+v", name, want, figures)
				}
			}
		})
	}
}

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

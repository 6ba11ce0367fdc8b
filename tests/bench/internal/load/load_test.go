package load

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/shared"
)

func TestMain(m *testing.M) { suite.Main(m) }

// newWorkers returns workers whose lock is a channel, and the memory that checks it.
func newWorkers(t *testing.T) (Workers, *shared.Memory) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memory")
	if err := shared.Create(path); err != nil {
		t.Fatal(err)
	}
	memory, err := shared.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() })
	return Workers{Lock: lock.Channel, Memory: path, Processes: 1, Goroutines: 8, Section: time.Millisecond}, memory
}

// A job is the interface of Loop and Burst.
type job interface {
	Prepare(ctx context.Context) error
	Run(ctx context.Context, start time.Time) (any, error)
	Close() error
}

func prepare(t *testing.T, j job) {
	t.Helper()
	if err := j.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
}

func outcomeOf(t *testing.T, j job) *Outcome {
	t.Helper()
	outcome, err := j.Run(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return outcome.(*Outcome)
}

func TestLoopCountsTurns(t *testing.T) {
	c, memory := newWorkers(t)
	l := &Loop{Workers: c, Window: 50 * time.Millisecond}
	prepare(t, l)
	o := outcomeOf(t, l)
	if o.Acquired == 0 || o.Waits.Count != o.Acquired || len(o.Faults) > 0 || o.Stuck > 0 {
		t.Errorf("outcome: %+v", o)
	}
	if got := memory.Violations(o.Acquired); got != 0 {
		t.Errorf("a channel let two in, %d times", got)
	}
	var shares int64
	for _, share := range o.Shares {
		shares += share
	}
	if shares != o.AcquiredInTime || o.AcquiredInTime > o.Acquired || o.HandoffsInTime > o.Handoffs {
		t.Errorf("shares sum up to %d: %+v", shares, o)
	}
}

func TestBurstTakesTheLockOncePerRound(t *testing.T) {
	c, memory := newWorkers(t)
	b := &Burst{Workers: c, Repeat: 3}
	prepare(t, b)
	o := outcomeOf(t, b)
	if o.Acquired != 24 || len(o.Rounds) != 3 {
		t.Errorf("%d turns in %d rounds", o.Acquired, len(o.Rounds))
	}
	if got := memory.Violations(o.Acquired); got != 0 {
		t.Errorf("a channel let two in, %d times", got)
	}
	for i, r := range o.Rounds {
		if took := r.LastGrant.Sub(r.Start); took < 7*time.Millisecond {
			t.Errorf("round %d: 8 turns of 1 ms took %v", i, took)
		}
	}
}

// noLock is a lock that does not exclude.
type noLock struct{}

func (noLock) Lock(context.Context, string) (lock.Held, error) { return noLock{}, nil }
func (noLock) Release(context.Context) error                   { return nil }
func (noLock) Close() error                                    { return nil }

func TestPermitsAreCounted(t *testing.T) {
	const permits = 3
	for _, test := range []struct{ locks, checked int }{{permits, permits}, {permits + 1, permits}} {
		c, memory := newWorkers(t)
		c.Permits = test.locks
		l := &Loop{Workers: c, Window: 50 * time.Millisecond}
		prepare(t, l)
		l.Permits = test.checked
		o := outcomeOf(t, l)
		if got := memory.Violations(o.Acquired) > 0; o.Acquired == 0 || got != (test.locks > test.checked) {
			t.Errorf("%d permits, where %d are right: %d turns, violations %t", test.locks, test.checked, o.Acquired, got)
		}
	}
}

func TestEachLockerHasItsGoroutines(t *testing.T) {
	c, _ := newWorkers(t)
	c.Lockers = 4
	l := &Loop{Workers: c, Window: 10 * time.Millisecond}
	prepare(t, l)
	if len(l.locks) != 4 || l.lockerOf(1) == l.lockerOf(2) || l.lockerOf(1) != l.lockerOf(5) {
		t.Errorf("%d Lockers", len(l.locks))
	}
}

func TestALockThatDoesNotExcludeIsSeen(t *testing.T) {
	c, memory := newWorkers(t)
	l := &Loop{Workers: c, Window: 50 * time.Millisecond}
	prepare(t, l)
	l.locks = []lock.Locker{noLock{}}
	o := outcomeOf(t, l)
	if memory.Violations(o.Acquired) == 0 {
		t.Errorf("%d turns without a lock, and no violation was seen", o.Acquired)
	}
}

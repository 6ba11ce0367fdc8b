package growth

import (
	"context"
	"strconv"

	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
	"github.com/reqlock/reqlock/tests/bench/internal/runner"
)

// The names of the suites.
const (
	KeysSuite    = "grow-keys"
	WaitersSuite = "grow-waiters"
)

// The largest numbers of keys and of waiters.
const (
	mostKeys    = 100_000
	mostWaiters = 10_000
)

// counts returns the powers of ten up to n, or up to the runner's limit.
func counts(l *runner.Runner, n int) (powers []int) {
	for power := 1; power <= min(n, l.Largest); power *= 10 {
		powers = append(powers, power)
	}
	return powers
}

// A KeysRun is the result of one Keys.
type KeysRun struct {
	Keys       int
	Repetition int
	KeysOutcome
	LeftInRedis int64 // keys that are left at the end
}

// RunKeys runs all numbers of keys, in alternating order.
func RunKeys(ctx context.Context, l *runner.Runner) ([]KeysRun, error) {
	var runs []KeysRun
	sizes := counts(l, mostKeys)
	err := l.Repeat(KeysSuite, len(sizes), func(repetition, contestant int) error {
		n := sizes[contestant]
		if err := l.Server.Clear(ctx); err != nil {
			return err
		}
		outcomes, err := jobprocess.Run[KeysOutcome](ctx, []jobprocess.Job{&Keys{Addr: l.Server.Addr, Keys: n}}, jobprocess.Options{
			Profile: l.Profile(KeysSuite, strconv.Itoa(n), repetition),
		})
		if err != nil {
			return err
		}
		used, err := l.Server.Used(ctx)
		runs = append(runs, KeysRun{n, repetition + 1, outcomes[0], used.Keys})
		return err
	})
	return runs, err
}

// A WaitersRun is the result of one Waiters.
type WaitersRun struct {
	Waiters    int
	Repetition int
	WaitersOutcome
}

// RunWaiters runs all numbers of waiters, in alternating order.
func RunWaiters(ctx context.Context, l *runner.Runner) ([]WaitersRun, error) {
	var runs []WaitersRun
	sizes := counts(l, mostWaiters)
	err := l.Repeat(WaitersSuite, len(sizes), func(repetition, contestant int) error {
		n := sizes[contestant]
		outcomes, err := jobprocess.Run[WaitersOutcome](ctx, []jobprocess.Job{&Waiters{Addr: l.Server.Addr, Waiters: n}}, jobprocess.Options{
			Profile: l.Profile(WaitersSuite, strconv.Itoa(n), repetition),
		})
		if err == nil {
			runs = append(runs, WaitersRun{n, repetition + 1, outcomes[0]})
		}
		return err
	})
	return runs, err
}

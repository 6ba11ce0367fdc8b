package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// crashTTL is the TTL of the lock of the killed holder.
	crashTTL = 2 * time.Second
	// early tolerates the resolution of clocks: how much before its TTL a key may
	// seem to be free.
	early = 10 * time.Millisecond
	// late is how long after the TTL the waiter must have the lock. A waiter checks
	// soon after the TTL; the rest tolerates a busy machine.
	late = 3 * time.Second
)

// afterCrash returns a scenario that sends two transfers from an account after the holder of
// its lock was killed. The first does not wait. The second waits for the end of the TTL.
func afterCrash(ttl time.Duration) func(context.Context, *testedService) (outcome, error) {
	return func(ctx context.Context, r *testedService) (outcome, error) { return r.afterCrash(ctx, ttl) }
}

func (r *testedService) afterCrash(ctx context.Context, ttl time.Duration) (outcome, error) {
	open := r.Monitor.reset()
	open()
	dead, err := r.Crash(ctx, "account:carol", ttl)
	if err != nil {
		return outcome{}, err
	}
	first, err := r.Client.transfer(ctx, "carol", "dave", 100)
	if err != nil {
		return outcome{}, err
	}
	second, err := r.Client.settle(ctx, "carol", "dave", 100)
	if err != nil {
		return outcome{}, err
	}
	free := time.Now()

	tooEarly := free.Before(dead.Asked.Add(ttl - early))
	tooLate := free.After(dead.Died.Add(ttl + late))
	return outcome{
		Happened: fmt.Sprintf("%v, then %v after %.2f s", first, second, free.Sub(dead.Asked).Seconds()),
		Right:    first.Busy && second.Done && !tooEarly && !tooLate,
	}, nil
}

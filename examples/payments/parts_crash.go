package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// crashTTL is the TTL of the lock whose holder is killed.
	crashTTL = 2 * time.Second
	// early is how much before its TTL a key may seem to be free: clocks are
	// read in steps.
	early = 10 * time.Millisecond
	// late is how long after its TTL a key must be taken: a waiter looks soon
	// after that, and machines are busy.
	late = 3 * time.Second
)

// afterCrash sends a transfer from an account whose lock is held by a process
// that was killed, and one that waits.
func afterCrash(ctx context.Context, r *running) (finding, error) {
	open := r.Scene.begin()
	open()
	dead, err := r.Crash(ctx, "account:carol", crashTTL)
	if err != nil {
		return finding{}, err
	}
	first, err := r.Client.transfer(ctx, "carol", "dave", 100)
	if err != nil {
		return finding{}, err
	}
	second, err := r.Client.settle(ctx, "carol", "dave", 100)
	if err != nil {
		return finding{}, err
	}
	free := time.Now()

	tooEarly := free.Before(dead.Asked.Add(crashTTL - early))
	tooLate := free.After(dead.Died.Add(crashTTL + late))
	return finding{
		Happened: fmt.Sprintf("%v, then %v after %.2f s", first, second, free.Sub(dead.Asked).Seconds()),
		Right:    first.Busy && second.Done && !tooEarly && !tooLate,
	}, nil
}

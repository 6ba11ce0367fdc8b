package main

import (
	"context"
	"fmt"
	"time"
)

// A running is a service that runs, seen from outside and from inside. On
// which framework it stands makes no difference to the parts.
type running struct {
	Client client
	Scene  *scene
	Bank   *bank
	// Crash takes a lock of the service's in another process, and kills that.
	Crash func(ctx context.Context, key string, ttl time.Duration) (crash, error)
}

// A part is one thing that clients do to a running service.
type part struct {
	Sent     string
	Expected string
	Play     func(context.Context, *running) (finding, error)
}

// A finding is what happened in a part.
type finding struct {
	Happened string
	Right    bool
}

// A result is a part that was played.
type result struct {
	part
	finding
	Err  error // why the part did not come to its end
	Took time.Duration
}

// right reports whether the part went as expected.
func (r result) right() bool { return r.Right && r.Err == nil }

// nine is how many clients come at once.
const nine = 9

// allParts returns the parts in the order in which they are played, for a
// service that speaks in these words.
func allParts(w words) []part {
	return []part{
		{
			Sent:     "9 transfers from alice, no wait",
			Expected: fmt.Sprintf("1 done, 8 × %s + %s", w.Busy, w.Retry),
			Play:     oneRuns,
		},
		{
			Sent:     "9 orders of ann, each waits",
			Expected: "9 done one by one, in order",
			Play:     inTurn,
		},
		{
			Sent:     "9 orders of nine users",
			Expected: "9 done, all inside at once",
			Play:     inParallel,
		},
		{
			Sent:     "100 alice→bob and 100 bob→alice",
			Expected: "200 done, balances right",
			Play:     bothWays,
		},
		{
			Sent:     "9 payments of one key, 9 retries",
			Expected: "1 charge, 8 + 9 replays, all equal",
			Play:     oneCharge,
		},
		{
			Sent:     "2 transfers, lock holder killed",
			Expected: fmt.Sprintf("%s, then done after 2 s (TTL)", w.Busy),
			Play:     afterCrash,
		},
	}
}

// longest bounds one part, should it get stuck.
const longest = 20 * time.Second

// play plays a part.
func (p part) play(ctx context.Context, r *running) result {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	found, err := p.Play(ctx, r)
	return result{part: p, finding: found, Err: err, Took: time.Since(begun)}
}

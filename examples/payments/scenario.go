package main

import (
	"context"
	"fmt"
	"time"
)

// A testedService is a running service, as scenarios use it. Scenarios do not depend
// on its framework.
type testedService struct {
	Client  client
	Monitor *monitor
	Bank    *bank
	// Crash takes a lock of the service in another process, and kills that process.
	Crash func(ctx context.Context, key string, ttl time.Duration) (crash, error)
	// Another starts another instance of the service, with the same bank.
	Another func(ctx context.Context) (*instance, error)
}

// A scenario is a set of requests to a running service, with the expected result.
type scenario struct {
	Sent     string
	Expected string
	Run      func(context.Context, *testedService) (outcome, error)
}

// An outcome is what happened in a scenario.
type outcome struct {
	Happened string
	Right    bool
}

// A result is a scenario with its outcome.
type result struct {
	scenario
	outcome
	Err  error // why the scenario did not complete
	Took time.Duration
}

// right reports whether the outcome was as expected.
func (r result) right() bool { return r.Right && r.Err == nil }

// nine is the number of concurrent clients.
const nine = 9

// allScenarios returns the scenarios in the order in which they run, for a service
// with a protocol.
func allScenarios(w protocol) []scenario {
	return []scenario{
		{
			Sent:     "9 transfers from alice, no wait",
			Expected: fmt.Sprintf("1 done, 8 × %s + %s", w.Busy, w.Retry),
			Run:      oneRuns,
		},
		{
			Sent:     "9 orders of ann, each waits",
			Expected: "9 done one by one, in order",
			Run:      inTurn,
		},
		{
			Sent:     "9 orders of nine users",
			Expected: "9 done, all inside at once",
			Run:      inParallel,
		},
		{
			Sent:     "100 alice→bob and 100 bob→alice",
			Expected: "200 done, balances right",
			Run:      bothWays,
		},
		{
			Sent:     "9 payments of one key, 9 retries",
			Expected: "1 charge, 8 + 9 replays, all equal",
			Run:      oneCharge,
		},
		{
			Sent:     "2 transfers, lock holder killed",
			Expected: fmt.Sprintf("%s, then done after 2 s (TTL)", w.Busy),
			Run:      afterCrash(crashTTL),
		},
		{
			Sent:     "9 settlements, 3 permits",
			Expected: "9 done, at most 3 inside at once",
			Run:      inThrees,
		},
		{
			Sent:     "9 reads of alice, 1 settlement",
			Expected: "10 done, 9 reads at once, then 1 write",
			Run:      readsThenWrite,
		},
		{
			Sent:     "1 payment, client hangs up, 1 retry",
			Expected: "1 charge, 1 replay for the retry",
			Run:      hangsUp,
		},
		{
			Sent:     "1 payment fails uncharged, 1 retry",
			Expected: fmt.Sprintf("%s, then done, 1 charge", w.Error),
			Run:      fails(beforeCharge),
		},
		{
			Sent:     "1 payment fails charged, 1 retry",
			Expected: fmt.Sprintf("%s, then unknown, 1 charge", w.Error),
			Run:      fails(afterCharge),
		},
		{
			Sent:     "1 payment during a deploy, 1 retry",
			Expected: "1 charge, 1 replay for the retry",
			Run:      isDeployed,
		},
		{
			Sent:     "1 payment, Redis away, 2 retries",
			Expected: "1 charge, 2 replays",
			Run:      redisIsAway,
		},
	}
}

// longest limits one scenario, in case it blocks. It allows for a very busy machine.
const longest = time.Minute

// run runs a scenario.
func (p scenario) run(ctx context.Context, r *testedService) result {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	begun := time.Now()
	found, err := p.Run(ctx, r)
	return result{scenario: p, outcome: found, Err: err, Took: time.Since(begun)}
}

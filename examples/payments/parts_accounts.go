package main

import (
	"context"
	"fmt"
)

// How part four is made up: so many clients each way, with so many transfers
// of so many cents each.
const (
	clientsEachWay  = 4
	transfersOfEach = 25
	centsThere      = 3
	centsBack       = 2
)

// bothWays sends transfers from a to b and from b to a. Each takes the locks of
// both accounts: locks taken in the order of the request would soon wait for
// each other. The first to come in stays there until all other clients wait.
func bothWays(ctx context.Context, r *running) (finding, error) {
	const a, b = "alice", "bob"
	before, err := balances(r.Bank, a, b)
	if err != nil {
		return finding{}, err
	}
	open := r.Scene.begin()
	defer open()
	crowd := newCrowd(r.Scene)
	for range clientsEachWay {
		crowd.send(transfersOfEach, func() (answer, error) { return r.Client.settle(ctx, a, b, centsThere) })
		crowd.send(transfersOfEach, func() (answer, error) { return r.Client.settle(ctx, b, a, centsBack) })
	}
	stuck := r.Scene.until(ctx, func(now view) bool {
		return now.Inside+now.Waiting+now.Answered >= 2*clientsEachWay
	})
	open()
	got, seen := crowd.wait(), r.Scene.view()
	after, err := balances(r.Bank, a, b)
	if err != nil {
		return finding{}, err
	}

	const each = clientsEachWay * transfersOfEach
	const net = each * (centsBack - centsThere)
	money := "balances right"
	switch made := after[0] + after[1] - before[0] - before[1]; {
	case made != 0:
		money = fmt.Sprintf("%+d cents in all", made)
	case after[0]-before[0] != net:
		money = "balances wrong"
	}
	happened := fmt.Sprintf("%v, %s", got, money)
	if seen.Most > 1 {
		happened += fmt.Sprintf(", %d at once", seen.Most)
	}
	return finding{
		Happened: happened,
		Right: got.Done == 2*each && seen.Most == 1 &&
			after[0]-before[0] == net && after[1]-before[1] == -net,
	}, stuck
}

// balances returns the balances of two accounts.
func balances(from *bank, a, b string) (both [2]int64, err error) {
	if both[0], err = from.balance(a); err != nil {
		return both, err
	}
	both[1], err = from.balance(b)
	return both, err
}

package main

import (
	"context"
	"fmt"
)

// The sizes of bothWays: clients for each direction, transfers of each client, and
// cents of each transfer.
const (
	clientsEachWay  = 4
	transfersOfEach = 25
	centsThere      = 3
	centsBack       = 2
)

// bothWays sends transfers from a to b and from b to a. Each transfer takes the locks
// of both accounts; in the order of the request, they would deadlock. The first
// transfer runs until all other clients wait. Each client begins when the others are inside
// or wait, so that both directions are among those that have permits.
func bothWays(ctx context.Context, r *testedService) (outcome, error) {
	const a, b = "alice", "bob"
	before, err := balances(r.Bank, a, b)
	if err != nil {
		return outcome{}, err
	}
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	there := func() (answer, error) { return r.Client.settle(ctx, a, b, centsThere) }
	back := func() (answer, error) { return r.Client.settle(ctx, b, a, centsBack) }
	var stuck error
	for i := range 2 * clientsEachWay {
		group.send(transfersOfEach, []func() (answer, error){there, back}[i%2])
		stuck = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered > i })
	}
	open()
	got, seen := group.wait(), r.Monitor.snapshot()
	after, err := balances(r.Bank, a, b)
	if err != nil {
		return outcome{}, err
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
	if seen.MaxInside > 1 {
		happened += fmt.Sprintf(", %d at once", seen.MaxInside)
	}
	return outcome{
		Happened: happened,
		Right: got.Done == 2*each && seen.MaxInside == 1 &&
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

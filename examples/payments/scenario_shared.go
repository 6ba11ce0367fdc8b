package main

import (
	"context"
	"fmt"
	"slices"
)

// batchAccounts returns the accounts of the nth settlement of a batch job. No two settlements
// have an account in common.
func batchAccounts(n int) (payer, payee string) {
	return fmt.Sprintf("payer-%d", n+1), fmt.Sprintf("payee-%d", n+1)
}

// permits is how many settlements run at once: see the locks named batch.
const permits = 3

// inThrees sends nine settlements, which have no account in common. The first three run until the six
// others wait.
func inThrees(ctx context.Context, r *testedService) (outcome, error) {
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	for n := range nine {
		from, to := batchAccounts(n)
		group.send(1, func() (answer, error) { return r.Client.settle(ctx, from, to, 100) })
	}
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool {
		return now.Answered > 0 || now.Inside >= permits && now.Inside+now.Waiting >= nine
	})
	open()
	got, seen := group.wait(), r.Monitor.snapshot()
	return outcome{
		Happened: fmt.Sprintf("%v, at most %d inside at once", got, seen.MaxInside),
		Right:    got.Done == nine && seen.MaxInside == permits,
	}, err
}

// readsThenWrite reads an account nine times, and sends a settlement of it while all nine
// reads run. The reads run until the settlement waits.
func readsThenWrite(ctx context.Context, r *testedService) (outcome, error) {
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	for range nine {
		group.send(1, func() (answer, error) { return r.Client.balance(ctx, "alice") })
	}
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Answered > 0 || now.Inside == nine })
	group.send(1, func() (answer, error) { return r.Client.settle(ctx, "alice", "bob", 1) })
	if err == nil {
		err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered > nine })
	}
	open()
	got, seen := group.wait(), r.Monitor.snapshot()
	want := append(slices.Repeat([]string{"show alice"}, nine), "transfer alice bob")
	happened := fmt.Sprintf("%v, %d reads at once, then 1 write", got, seen.MaxInside)
	if !slices.Equal(seen.Operations, want) || seen.MaxInside > nine {
		happened = fmt.Sprintf("%v, %d at once: %q", got, seen.MaxInside, seen.Operations)
	}
	return outcome{
		Happened: happened,
		Right:    got.Done == nine+1 && seen.MaxInside == nine && slices.Equal(seen.Operations, want),
	}, err
}

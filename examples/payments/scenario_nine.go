package main

import (
	"context"
	"fmt"
	"slices"
)

// oneRuns sends nine transfers from one account, without wait. The handler of one
// transfer runs until the other transfers have their answers.
func oneRuns(ctx context.Context, r *testedService) (outcome, error) {
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	for range nine {
		group.send(1, func() (answer, error) { return r.Client.transfer(ctx, "alice", "bob", 100) })
	}
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	got := group.wait()
	return outcome{
		Happened: got.String(),
		Right:    got.Done == 1 && got.Refused == nine-1,
	}, err
}

// inTurn sends nine orders of one user, which wait for the lock. It sends an order
// after the previous one was seen waiting, so that their order is known.
func inTurn(ctx context.Context, r *testedService) (outcome, error) {
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	var sent []string
	for n := range nine {
		item := fmt.Sprintf("item-%d", n+1)
		sent = append(sent, "order ann "+item)
		group.send(1, func() (answer, error) { return r.Client.order(ctx, "ann", item) })
		err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered > n })
		if err != nil {
			open()
			group.wait()
			return outcome{}, err
		}
	}
	open()
	got, seen := group.wait(), r.Monitor.snapshot()
	together, order := "one by one", "in order"
	if seen.MaxInside != 1 {
		together = fmt.Sprintf("%d at once", seen.MaxInside)
	}
	if !slices.Equal(seen.Operations, sent) {
		order = "out of order"
	}
	return outcome{
		Happened: fmt.Sprintf("%v %s, %s", got, together, order),
		Right:    got.Done == nine && seen.MaxInside == 1 && slices.Equal(seen.Operations, sent),
	}, nil
}

// inParallel sends one order of each of nine users. Their handlers run until all nine
// have started.
func inParallel(ctx context.Context, r *testedService) (outcome, error) {
	open := r.Monitor.reset()
	defer open()
	group := newClientGroup(r.Monitor)
	for n := range nine {
		user := fmt.Sprintf("user-%d", n+1)
		group.send(1, func() (answer, error) { return r.Client.order(ctx, user, "item") })
	}
	err := r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	got, seen := group.wait(), r.Monitor.snapshot()
	together := "all inside at once"
	if seen.MaxInside != nine {
		together = fmt.Sprintf("%d inside at once", seen.MaxInside)
	}
	return outcome{
		Happened: fmt.Sprintf("%v, %s", got, together),
		Right:    got.Done == nine && seen.MaxInside == nine,
	}, err
}

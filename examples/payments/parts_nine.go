package main

import (
	"context"
	"fmt"
	"slices"
)

// oneRuns sends nine transfers from one account, none of which waits. The one
// that runs stays inside until the others have their answer.
func oneRuns(ctx context.Context, r *running) (finding, error) {
	open := r.Scene.begin()
	defer open()
	crowd := newCrowd(r.Scene)
	for range nine {
		crowd.send(1, func() (answer, error) { return r.Client.transfer(ctx, "alice", "bob", 100) })
	}
	err := r.Scene.until(ctx, func(now view) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	got := crowd.wait()
	return finding{
		Happened: got.String(),
		Right:    got.Done == 1 && got.Refused == nine-1,
	}, err
}

// inTurn sends nine orders of one user, each of which waits. Each is sent once
// the one before was seen waiting, so that their order is known.
func inTurn(ctx context.Context, r *running) (finding, error) {
	open := r.Scene.begin()
	defer open()
	crowd := newCrowd(r.Scene)
	var sent []string
	for n := range nine {
		item := fmt.Sprintf("item-%d", n+1)
		sent = append(sent, "order ann "+item)
		crowd.send(1, func() (answer, error) { return r.Client.order(ctx, "ann", item) })
		err := r.Scene.until(ctx, func(now view) bool { return now.Inside+now.Waiting+now.Answered > n })
		if err != nil {
			open()
			crowd.wait()
			return finding{}, err
		}
	}
	open()
	got, seen := crowd.wait(), r.Scene.view()
	together, order := "one by one", "in order"
	if seen.Most != 1 {
		together = fmt.Sprintf("%d at once", seen.Most)
	}
	if !slices.Equal(seen.Visits, sent) {
		order = "out of order"
	}
	return finding{
		Happened: fmt.Sprintf("%v %s, %s", got, together, order),
		Right:    got.Done == nine && seen.Most == 1 && slices.Equal(seen.Visits, sent),
	}, nil
}

// inParallel sends an order of each of nine users. They stay inside until all
// are there.
func inParallel(ctx context.Context, r *running) (finding, error) {
	open := r.Scene.begin()
	defer open()
	crowd := newCrowd(r.Scene)
	for n := range nine {
		user := fmt.Sprintf("user-%d", n+1)
		crowd.send(1, func() (answer, error) { return r.Client.order(ctx, user, "item") })
	}
	err := r.Scene.until(ctx, func(now view) bool { return now.Inside+now.Waiting+now.Answered >= nine })
	open()
	got, seen := crowd.wait(), r.Scene.view()
	together := "all inside at once"
	if seen.Most != nine {
		together = fmt.Sprintf("%d inside at once", seen.Most)
	}
	return finding{
		Happened: fmt.Sprintf("%v, %s", got, together),
		Right:    got.Done == nine && seen.Most == nine,
	}, err
}

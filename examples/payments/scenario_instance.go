package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// isDeployed sends a payment to an instance that a deploy stops meanwhile, and then sends it again to
// the service. The payment goes on to its end, and is made once.
func isDeployed(ctx context.Context, r *testedService) (outcome, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Monitor.reset()
	defer open()
	old, err := r.Another(ctx)
	if err != nil {
		return outcome{}, err
	}
	group := newClientGroup(r.Monitor)
	group.send(1, func() (answer, error) { return old.client.pay(ctx, key, "alice", "bob", 100) })
	err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside > 0 })
	stopped := make(chan error, 1)
	go func() { stopped <- old.close(ctx) }()
	group.send(1, func() (answer, error) { return r.Client.pay(ctx, key, "alice", "bob", 100) })
	if err == nil {
		err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Waiting+now.Answered > 0 })
	}
	open()
	got := group.wait()
	err = errors.Join(err, <-stopped)
	charges := r.Bank.transfersMade() - before
	return outcome{
		Happened: fmt.Sprintf("%s, %d replay for the retry", plural(charges, "charge"), got.Replayed),
		Right:    charges == 1 && got.Done == 2 && got.Replayed == 1,
	}, err
}

// redisIsAway sends a payment to an instance that loses its Redis before the payment is made, and
// twice again: to the same instance, and to the service when Redis has the answer. The payment is
// made once.
func redisIsAway(ctx context.Context, r *testedService) (outcome, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Monitor.reset()
	defer open()
	away, err := r.Another(ctx)
	if err != nil {
		return outcome{}, err
	}
	group := newClientGroup(r.Monitor)
	pay := func(to client) {
		group.send(1, func() (answer, error) { return to.pay(ctx, key, "alice", "bob", 100) })
	}
	pay(away.client)
	err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Inside > 0 })
	mend := away.link.cut()
	defer mend()
	open()
	group.wait()
	pay(away.client)
	group.wait()
	mend()
	if err == nil {
		err = r.Monitor.waitFor(ctx, func(now snapshot) bool { return now.Recovered > 0 })
	}
	pay(r.Client)
	got := group.wait()
	err = errors.Join(err, away.close(ctx))
	charges := r.Bank.transfersMade() - before
	return outcome{
		Happened: fmt.Sprintf("%s, %d replays", plural(charges, "charge"), got.Replayed),
		Right:    charges == 1 && got.Done == 3 && got.Replayed == 2 && len(got.Contents) == 1,
	}, err
}

package main

import (
	"context"
	"crypto/rand"
	"fmt"
)

// fails returns a scenario that sends a payment which fails at a place, and then sends it again.
// If it has charged nothing, the second one charges. Otherwise it is refused, because it is unknown
// whether the first one has charged.
func fails(at failure) func(context.Context, *testedService) (outcome, error) {
	return func(ctx context.Context, r *testedService) (outcome, error) { return r.fails(ctx, at) }
}

func (r *testedService) fails(ctx context.Context, at failure) (outcome, error) {
	before := r.Bank.transfersMade()
	key := rand.Text()
	open := r.Monitor.reset()
	open()
	r.Monitor.failNext(at)
	first, err := r.Client.pay(ctx, key, "alice", "bob", 100)
	if err != nil {
		return outcome{}, err
	}
	second, err := r.Client.pay(ctx, key, "alice", "bob", 100)
	charges := r.Bank.transfersMade() - before
	charged := at == afterCharge
	return outcome{
		Happened: fmt.Sprintf("%v, then %v, %s", first, second, plural(charges, "charge")),
		Right:    !first.Done && second.Done != charged && second.Unknown == charged && charges == 1,
	}, err
}

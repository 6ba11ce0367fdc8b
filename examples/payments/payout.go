package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A job is a payout that a worker makes. Its payload may lie in a queue: examples/worker has one.
type job struct {
	Account string
	Cents   int64
	Lock    core.Ticket // a secret: its reader can take the lock of the account
}

// payOut leaves a payout to the worker, with the lock of the account, which ends for the caller. The
// caller answers 202, and names where the client sees the effect.
func (b *bank) payOut(ctx context.Context, account string, cents int64) (location string, err error) {
	if b.accounts[account] == nil || cents <= 0 {
		return "", errInvalid
	}
	lease, _ := core.LeaseFromContext(ctx)
	ticket, err := lease.Handover(ctx, time.Minute)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(job{account, cents, ticket})
	if err != nil {
		return "", err
	}
	b.jobs <- payload
	return "/accounts/" + account + "/balance", nil // who reads the balance waits for the lock
}

// work makes payouts until ctx ends. A worker can be another process.
func (b *bank) work(ctx context.Context, locks *core.Locker) {
	for {
		select {
		case <-ctx.Done():
			return
		case payload := <-b.jobs:
			b.workOn(ctx, locks.With(core.WithFencing(true)), payload)
		}
	}
}

// workOn takes the lock of a payout over, and makes the payout. In this example, a payout that fails is gone.
func (b *bank) workOn(ctx context.Context, locks *core.Locker, payload []byte) {
	var todo job
	if err := json.Unmarshal(payload, &todo); err != nil {
		return
	}
	lease, err := locks.Accept(ctx, todo.Lock)
	if err != nil {
		return // core.ErrChanged: another worker has the job, or it came too late
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	account := b.accounts[todo.Account]
	left := account.Load() - todo.Cents
	if err := b.clear(lease.Context(), "payout "+todo.Account); err != nil || left < 0 {
		return
	}
	account.Store(left)
	_ = b.booked()
}

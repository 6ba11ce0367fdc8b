package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"

	"github.com/reqlock/reqlock/core"
)

// A worker does the work of an order under the lock of its account.
type worker struct {
	locks  *core.Locker
	orders orders
}

// ProcessTask takes the lock over from the service, and works.
func (w *worker) ProcessTask(ctx context.Context, task *asynq.Task) error {
	var order job
	if err := json.Unmarshal(task.Payload(), &order); err != nil {
		return fmt.Errorf("the payload is no job: %w", asynq.SkipRetry)
	}
	onStep("received")
	lease, err := w.locks.Accept(ctx, order.Lock)
	if errors.Is(err, core.ErrChanged) { // a second delivery, or one after the grace: wait for the others
		lease, err = w.locks.Lock(ctx, "account:"+order.Account)
	}
	if err != nil {
		return err // asynq delivers the task again
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	onStep("worker begins")
	defer onStep("worker ends")
	ctx = lease.Context()
	if state, err := w.orders.state(ctx, order.Order); err != nil || state == "done" {
		return err
	}
	// the work, as long as ctx lives
	return w.orders.set(ctx, order.Order, "done", lease.Fence())
}

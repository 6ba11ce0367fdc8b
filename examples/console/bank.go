package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

const (
	instances   = 3
	maxUnknown  = 12 // payments whose outcome becomes unknown in one run
	unknownEach = 30 * time.Second
)

// A bank is a service of several instances, which are in this process here.
type bank struct{ locks []*core.Locker }

func newBank(rdb redis.UniversalClient) (*bank, error) {
	b := &bank{}
	for n := range instances {
		locks, err := core.New(rdb,
			core.WithInstance(core.Instance{Service: "bank", Version: "1.4.0", Host: fmt.Sprintf("pod-%d", n+1), PID: n + 1}),
			core.WithCaller(true), core.WithLogger(nil))
		if err != nil {
			return nil, err
		}
		b.locks = append(b.locks, locks)
	}
	return b, nil
}

// close closes all instances.
func (b *bank) close(ctx context.Context) error {
	var errs []error
	for _, locks := range b.locks {
		errs = append(errs, locks.Close(ctx))
	}
	return errors.Join(errs...)
}

// run keeps all instances busy until ctx ends.
func (b *bank) run(ctx context.Context) {
	var work sync.WaitGroup
	for n, locks := range b.locks {
		work.Go(func() { report(ctx, locks, n) })
		work.Go(func() { sendMessages(ctx, locks) })
		for range 8 {
			work.Go(func() { transfer(ctx, locks) })
		}
	}
	work.Go(func() { b.pay(ctx) })
	work.Wait()
}

// transfer moves money, again and again. Half of all transfers are of one account.
func transfer(ctx context.Context, locks *core.Locker) {
	account := locks.With(core.WithName("account"))
	for ctx.Err() == nil {
		key := "account:ada"
		if n := rand.IntN(20); n >= 10 { //nolint:gosec // a demo
			key = fmt.Sprintf("account:%d", n)
		}
		_ = account.Do(ctx, key, func(ctx context.Context) error { return pause(ctx, 200, 1500) })
		_ = pause(ctx, 0, 1000)
	}
}

// report makes a report that takes minutes. Only one instance makes it at a time.
func report(ctx context.Context, locks *core.Locker, n int) {
	reports := locks.With(core.WithName("report"))
	for ctx.Err() == nil {
		_ = reports.Do(ctx, "report:daily", func(ctx context.Context) error { return pause(ctx, 120_000, 240_000) })
		_ = pause(ctx, 1000*n, 1000*(n+1))
	}
}

// sendMessages sends text messages. All instances send three at a time.
func sendMessages(ctx context.Context, locks *core.Locker) {
	messages := locks.With(core.WithName("sms"), core.WithPermits(3))
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for ctx.Err() == nil {
				_ = messages.Do(ctx, "sms:provider", func(ctx context.Context) error { return pause(ctx, 500, 3000) })
			}
		})
	}
	work.Wait()
}

// pay makes payments whose outcome is unknown: the provider has not answered.
func (b *bank) pay(ctx context.Context) {
	noAnswer := errors.New("the provider did not answer")
	for n := range maxUnknown {
		locks := b.locks[n%instances].With(core.WithName("payment"))
		if attempt, err := locks.Begin(ctx, fmt.Sprintf("payment:%d:%d", time.Now().UnixNano(), n), nil); err == nil {
			_ = pause(ctx, 1000, 2000)
			_ = attempt.Unknown(context.WithoutCancel(ctx), noAnswer)
		}
		if n > 0 { // the first two come at once
			_ = pause(ctx, int(unknownEach/time.Millisecond), int(unknownEach/time.Millisecond)+1)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// pause waits for a time in this range of milliseconds, or until ctx ends.
func pause(ctx context.Context, least, most int) error {
	timer := time.NewTimer(time.Duration(least+rand.IntN(most-least)) * time.Millisecond) //nolint:gosec // a demo
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

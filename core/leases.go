package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// leases are the locks of one request, in the order in which they were taken.
type leases struct {
	taken []*Lease
	// one and first are the memory of taken and of its first lease. Most requests have
	// only one lease, and so need no further allocation.
	one   [1]*Lease
	first Lease
	// ctx is derived from the contexts of all leases: it ends when one lease is lost.
	ctx context.Context
}

// acquireAll takes the lock of each key once, in byte order, so that callers do not
// deadlock. One wait covers all keys. If a lock is refused, acquireAll releases the locks
// that it has taken. FromContext finds the lease of the first key.
func (l *Locker) acquireAll(ctx context.Context, keys []string, wait time.Duration) (*leases, error) {
	if len(keys) == 0 {
		return nil, &Error{Kind: ErrNoKey}
	}
	first := keys[0]
	if len(keys) > 1 {
		keys = slices.Clone(keys)
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	all := &leases{ctx: ctx}
	all.taken = all.one[:0]
	begun := time.Now()
	var main *Lease
	for i, key := range keys {
		lease := &all.first
		if i > 0 {
			lease = &Lease{}
		}
		lease, err := l.acquire(all.ctx, key, leftOf(wait, begun), lease) //nolint:contextcheck // it is derived from ctx
		if err != nil {
			all.beginRelease()
			if !isUnavailable(err) && ctx.Err() == nil {
				_ = all.release() //nolint:contextcheck // so that the caller's next call does not find its own locks held
			}
			return nil, amend(err, wait)
		}
		all.taken = append(all.taken, lease)
		all.ctx = lease.Context() //nolint:fatcontext // one level for each key, so that each loss ends the last context
		if key == first {
			main = lease
		}
	}
	if innermost := all.taken[len(all.taken)-1]; innermost != main {
		again := &Lease{locker: l, key: main.key, hold: main.hold, nested: main.nested, parent: innermost}
		again.ctx = leaseContext{main.Context(), again}
		all.ctx = context.WithValue(all.ctx, leaseKey{}, again)
	}
	return all, nil
}

// leftOf returns how much of a wait is left.
func leftOf(wait time.Duration, begun time.Time) time.Duration {
	if wait <= 0 {
		return wait
	}
	return max(wait-time.Since(begun), 0)
}

// amend turns the error of one key into the error of the wait for all keys.
func amend(err error, wait time.Duration) error {
	var detail *Error
	if errors.As(err, &detail) && detail.Kind == ErrBusy && wait != 0 { //nolint:errorlint // this very kind, not one that wraps it
		return &Error{Kind: ErrWaitTimeout, RetryAfter: detail.RetryAfter, Cause: detail.Cause}
	}
	return err
}

// beginRelease begins the release of all locks, and waits for none. The contexts of nested
// leases end first, because a nested lease of one key may be derived from the lease of
// another key.
func (a *leases) beginRelease() {
	for _, lease := range a.taken {
		if lease.nested == nil {
			lease.hold.LoseNested()
		}
	}
	for _, lease := range slices.Backward(a.taken) {
		lease.beginRelease()
	}
}

// release releases all locks together. If a lease was lost, it returns that loss. It waits
// for Redis about as long as one command takes, also when the request's context has ended.
// It may be called more than once.
func (a *leases) release() (lost error) {
	if len(a.taken) > 1 {
		a.beginRelease()
	}
	for _, lease := range slices.Backward(a.taken) {
		err := lease.Release(context.Background())
		if isLoss(err) {
			lost = err
		}
	}
	return lost
}

// isUnavailable reports whether an error is a fault of Redis, not contention.
func isUnavailable(err error) bool { return errors.Is(err, ErrUnavailable) }

// waitForever is a wait without a limit.
const waitForever = engine.WaitForever

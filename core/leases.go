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
	// one and first are the memory of taken and of its first lease, which is the
	// only one of most requests.
	one   [1]*Lease
	first Lease
	// ctx is derived from the contexts of all leases: it ends when one of them
	// is lost.
	ctx context.Context
}

// acquireAll takes the locks of several keys, each once, in byte order so that
// two callers never wait for each other, and within one wait. If one cannot be
// had, those taken before it are released. The lease that FromContext finds is
// that of the first key.
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
			all.begin()
			if !isUnavailable(err) && ctx.Err() == nil {
				_ = all.release() //nolint:contextcheck // the caller's next attempt does not meet its own locks
			}
			return nil, amend(err, wait)
		}
		all.taken = append(all.taken, lease)
		all.ctx = lease.Context() //nolint:fatcontext // as deep as there are keys, so that the loss of any ends it
		if key == first {
			main = lease
		}
	}
	if innermost := all.taken[len(all.taken)-1]; innermost != main {
		again := &Lease{locker: l, key: main.key, hold: main.hold, nested: main.nested, around: innermost}
		again.ctx = leaseContext{main.Context(), again}
		all.ctx = context.WithValue(all.ctx, leaseKey{}, again)
	}
	return all, nil
}

// leftOf returns what is left of a wait.
func leftOf(wait time.Duration, begun time.Time) time.Duration {
	if wait <= 0 {
		return wait
	}
	return max(wait-time.Since(begun), 0)
}

// amend words the error of one key for the wait of all of them.
func amend(err error, wait time.Duration) error {
	var detail *Error
	if errors.As(err, &detail) && detail.Kind == ErrBusy && wait != 0 { //nolint:errorlint // the very kind, not those that are one
		return &Error{Kind: ErrWaitTimeout, RetryAfter: detail.RetryAfter, Cause: detail.Cause}
	}
	return err
}

// begin begins the release of all locks, and waits for none. The contexts of nested
// leases end first: a nested lease of one key may descend from the lease of another.
func (a *leases) begin() {
	for _, lease := range a.taken {
		if lease.nested == nil {
			lease.hold.LoseNested()
		}
	}
	for _, lease := range slices.Backward(a.taken) {
		lease.beginRelease()
	}
}

// release gives all locks back, together, and returns the loss of one, if there
// was any. It waits for Redis about as long as for one command, also when the
// request's context has ended. It may be called more than once.
func (a *leases) release() (lost error) {
	if len(a.taken) > 1 {
		a.begin()
	}
	for _, lease := range slices.Backward(a.taken) {
		err := lease.Release(context.Background())
		if isLoss(err) {
			lost = err
		}
	}
	return lost
}

// isUnavailable reports whether an error speaks of Redis, not of contention.
func isUnavailable(err error) bool { return errors.Is(err, ErrUnavailable) }

// waitForever is a wait without end.
const waitForever = engine.WaitForever

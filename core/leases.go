package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// acquireAll takes the lock of each key once, in byte order, so that callers do not
// deadlock. One wait covers all keys. If a lock is refused, acquireAll releases the locks
// that it has taken. LeaseFromContext finds the lease of the first key. An empty key takes no
// lock: it is that of a key that was skipped.
func acquireAll(ctx context.Context, l *Locker, keys []lockKey, wait time.Duration) (*LeaseSet, error) {
	var few [4]lockKey // avoids an allocation for most requests
	all, err := l.acquireInOrder(ctx, inLockOrder(l, few[:0], keys), wait)
	if err != nil {
		return nil, err
	}
	if len(keys) > 1 {
		listInOrder(all, keys)
	}
	return all, nil
}

// acquireInOrder takes the locks of the keys, one after the other. A mistake in any of them is
// refused before the first wait.
func (l *Locker) acquireInOrder(ctx context.Context, keys []lockKey, wait time.Duration) (*LeaseSet, error) {
	if len(keys) > 1 {
		for _, key := range keys {
			if _, err := l.findOuter(ctx, key); err != nil {
				return nil, err
			}
		}
	}
	all := &LeaseSet{ctx: ctx}
	all.taken = all.one[:0]
	returned := false
	defer func() { //nolint:contextcheck // the release does not end with ctx
		if !returned { // the request has panicked or its goroutine ends, as by an observer
			all.giveBack(false)
		}
	}()
	begun := time.Now()
	for i, key := range keys {
		lease := &all.first
		if i > 0 {
			lease = &Lease{}
		}
		lease, err := l.acquire(all.ctx, key, leftOf(wait, begun), lease) //nolint:contextcheck // it is derived from ctx
		if err != nil {
			all.giveBack(!isUnavailable(err) && ctx.Err() == nil) //nolint:contextcheck // so that the caller's next call does not find its own locks held
			returned = true
			return nil, amend(err, wait, i > 0)
		}
		all.taken = append(all.taken, lease)
		all.ctx = lease.Context() //nolint:fatcontext // one level for each key, so that each loss ends the last context
	}
	returned = true
	return all, nil
}

// inLockOrder appends each key once to the empty slice, in byte order, without empty keys. Of
// equal keys it takes the one that excludes most, because a lease of the others would nest in
// its lease. If they exclude the same, it takes the first one.
func inLockOrder(l *Locker, ordered, keys []lockKey) []lockKey {
	for _, key := range keys {
		if key.Raw != "" {
			ordered = append(ordered, key)
		}
	}
	if len(ordered) < 2 {
		return ordered
	}
	slices.SortStableFunc(ordered, func(a, b lockKey) int {
		return cmp.Or(strings.Compare(a.Raw, b.Raw), compareLimits(l.limitOf(a), l.limitOf(b)))
	})
	return slices.CompactFunc(ordered, func(a, b lockKey) bool { return a.Raw == b.Raw })
}

// listInOrder sets the lease of each key, and makes the lease of the first key the one that
// LeaseFromContext finds.
func listInOrder(s *LeaseSet, keys []lockKey) {
	s.named = make([]*Lease, len(keys))
	var main *Lease
	for i, key := range keys {
		s.named[i] = s.Lease(key.Raw)
		if main == nil {
			main = s.named[i]
		}
	}
	s.lead(main)
}

// lead makes main, which is one of the leases, the one that LeaseFromContext finds. The contexts of the
// leases are derived from each other, in the order of taken.
func (s *LeaseSet) lead(main *Lease) {
	if innermost := s.taken[len(s.taken)-1]; innermost != main {
		again := &Lease{locker: main.locker, key: main.key, hold: main.hold, nested: main.nested, parent: innermost, target: main.target}
		again.ctx = leaseContext{main.Context(), again}
		for i, lease := range s.named {
			if lease == main {
				s.named[i] = again
			}
		}
		main = again
	}
	s.ctx = &setContext{s.ctx, main, s}
}

// leftOf returns how much of a wait is left.
func leftOf(wait time.Duration, begun time.Time) time.Duration {
	if wait <= 0 {
		return wait
	}
	return max(wait-time.Since(begun), 0)
}

// amend turns the error of one key into the error of the wait for all keys. isLater says that it is not
// the first key.
func amend(err error, wait time.Duration, isLater bool) error {
	var detail *Error
	if !errors.As(err, &detail) {
		return err
	}
	if isLater {
		detail.early = false // the context ended after the call for all keys had begun
	}
	if detail.Kind == ErrBusy && wait != 0 { //nolint:errorlint // this very kind, not one that wraps it
		detail.Kind = ErrWaitTimeout
	}
	return err
}

// giveBack releases the locks of a request that does not run, all keys at once, also those of
// WithMinHold.
func (s *LeaseSet) giveBack(waits bool) {
	for _, lease := range s.taken {
		if lease.nested == nil {
			lease.hold.WaiveMinHold()
		}
	}
	s.beginRelease(waits)
	if waits {
		_ = s.release(context.Background())
	}
}

// beginRelease begins the release of all locks, and waits for none. The contexts of nested
// leases end first, because a nested lease of one key may be derived from the lease of
// another key. awaited says that a call of Release follows for each lease.
func (s *LeaseSet) beginRelease(awaited bool) {
	for _, lease := range s.taken {
		if lease.nested == nil {
			lease.hold.LoseNested()
		}
	}
	for _, lease := range slices.Backward(s.taken) {
		lease.beginRelease(awaited)
	}
}

// release releases all locks together. It returns the loss of a lease, if one was lost, or
// else the first other error. It may be called more than once.
func (s *LeaseSet) release(ctx context.Context) error {
	if len(s.taken) > 1 {
		s.beginRelease(true)
	}
	return releaseEach(ctx, s.taken)
}

// releaseEach releases the leases, the last one first. It does so even if an observer ends the
// goroutine.
func releaseEach(ctx context.Context, leases []*Lease) (failed error) {
	if len(leases) == 0 {
		return nil
	}
	last := len(leases) - 1
	if last > 0 {
		defer func() {
			if err := releaseEach(ctx, leases[:last]); isLoss(err) && !isLoss(failed) || failed == nil {
				failed = err
			}
		}()
	}
	return leases[last].Release(ctx)
}

// end releases all locks when the code under them has ended. It returns only a loss, because
// the result of the code does not depend on other errors. It waits for Redis about as long as
// one command takes, also when the request's context has ended.
func (s *LeaseSet) end() (lost error) {
	if err := s.release(context.Background()); isLoss(err) {
		return err
	}
	return nil
}

// isUnavailable reports whether an error is a fault of Redis, not contention.
func isUnavailable(err error) bool { return errors.Is(err, ErrUnavailable) }

// waitForever is a wait without a limit.
const waitForever = engine.WaitForever

package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// noName is the name of a key function that was skipped. A key is never empty.
const noName = ""

// acquireAll takes the lock of each key once, in byte order, so that callers do not
// deadlock. One wait covers all keys. If a lock is refused, acquireAll releases the locks
// that it has taken. FromContext finds the lease of the first key. names may contain noName,
// but not only noName.
func (l *Locker) acquireAll(ctx context.Context, names []string, wait time.Duration) (*LeaseSet, error) {
	keys := inLockOrder(names)
	if len(keys) == 0 {
		return nil, &Error{Kind: ErrNoKey}
	}
	all := &LeaseSet{ctx: ctx}
	all.taken = all.one[:0]
	begun := time.Now()
	for i, key := range keys {
		lease := &all.first
		if i > 0 {
			lease = &Lease{}
		}
		lease, err := l.acquire(all.ctx, key, leftOf(wait, begun), lease) //nolint:contextcheck // it is derived from ctx
		if err != nil {
			all.waiveMinHold()
			all.beginRelease()
			if !isUnavailable(err) && ctx.Err() == nil {
				_ = all.release(context.Background()) //nolint:contextcheck // so that the caller's next call does not find its own locks held
			}
			return nil, amend(err, wait)
		}
		all.taken = append(all.taken, lease)
		all.ctx = lease.Context() //nolint:fatcontext // one level for each key, so that each loss ends the last context
	}
	if len(names) > 1 {
		all.listInOrder(names)
	}
	return all, nil
}

// inLockOrder returns each key once, in byte order, without noName.
func inLockOrder(names []string) []string {
	if len(names) < 2 {
		return names
	}
	keys := slices.Clone(names)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if keys[0] == noName {
		keys = keys[1:]
	}
	return keys
}

// listInOrder sets the lease of each name, and makes the lease of the first name the one that
// FromContext finds.
func (s *LeaseSet) listInOrder(names []string) {
	s.named = make([]*Lease, len(names))
	var main *Lease
	for i, name := range names {
		s.named[i] = s.Lease(name)
		if main == nil {
			main = s.named[i]
		}
	}
	if innermost := s.taken[len(s.taken)-1]; innermost != main {
		again := &Lease{locker: main.locker, key: main.key, hold: main.hold, nested: main.nested, parent: innermost}
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

// amend turns the error of one key into the error of the wait for all keys.
func amend(err error, wait time.Duration) error {
	var detail *Error
	if errors.As(err, &detail) && detail.Kind == ErrBusy && wait != 0 { //nolint:errorlint // this very kind, not one that wraps it
		return &Error{Kind: ErrWaitTimeout, RetryAfter: detail.RetryAfter, Cause: detail.Cause}
	}
	return err
}

// waiveMinHold makes the release free all keys at once: the request does not run.
func (s *LeaseSet) waiveMinHold() {
	for _, lease := range s.taken {
		if lease.nested == nil {
			lease.hold.WaiveMinHold()
		}
	}
}

// beginRelease begins the release of all locks, and waits for none. The contexts of nested
// leases end first, because a nested lease of one key may be derived from the lease of
// another key.
func (s *LeaseSet) beginRelease() {
	for _, lease := range s.taken {
		if lease.nested == nil {
			lease.hold.LoseNested()
		}
	}
	for _, lease := range slices.Backward(s.taken) {
		lease.beginRelease()
	}
}

// release releases all locks together. It returns the loss of a lease, if one was lost, or
// else the first other error. It may be called more than once.
func (s *LeaseSet) release(ctx context.Context) error {
	if len(s.taken) > 1 {
		s.beginRelease()
	}
	var failed error
	for _, lease := range slices.Backward(s.taken) {
		err := lease.Release(ctx)
		if isLoss(err) && !isLoss(failed) || failed == nil {
			failed = err
		}
	}
	return failed
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

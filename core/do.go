package core

import (
	"context"
	"errors"
)

// Do runs fn under the lock of a key. It releases the lock when fn returns, panics or ends
// its goroutine. It waits for the lock as Lock does. The context of fn is the context of the
// lease, which is cancelled when the lease is lost, and when Do returns.
//
// If fn did not run, Do returns the error of Lock. Otherwise it returns the error of fn. If
// the lease was lost while fn ran, the error is also ErrLost, because fn may have run
// without the lock.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context) error) error {
	return l.DoAll(ctx, []string{key}, fn)
}

// DoAll is Do with several keys. It locks each key once, in byte order, so callers that give
// the same keys in another order do not deadlock. One wait covers all keys. The locks are
// released together. In fn, LeasesFromContext returns one lease for each key. Without a key,
// and with an empty key, the error is ErrNoKey. LockAll is DoAll without a function.
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context) error) (err error) {
	all, err := l.LockAll(ctx, keys)
	if err != nil {
		if l.mayRunUnlocked(err) {
			observeUnlocked(ctx, l, lockKeysOf(nil, keys), err)
			return fn(&unlockedContext{ctx, len(keys)}) //nolint:contextcheck // it is derived from ctx
		}
		return err
	}
	defer func() { //nolint:contextcheck // the release does not end with ctx
		if lost := all.end(); lost != nil && !errors.Is(err, lost) {
			err = join(err, lost)
		}
	}()
	return fn(all.ctx) //nolint:contextcheck // it is derived from ctx
}

// mayRunUnlocked reports whether a request with this error runs without the lock:
// WithFailOpen is on, Redis is unavailable, the context of the request has not ended, and
// no lease of the request was lost.
func (l *Locker) mayRunUnlocked(err error) bool {
	var detail *Error
	return l.settings.failOpen && isUnavailable(err) && !isLoss(err) && errors.As(err, &detail) && detail.ended == nil
}

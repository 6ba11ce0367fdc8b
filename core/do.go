package core

import (
	"context"
	"errors"
)

// Do runs fn under the lock of a key, and releases it when fn returns, panics
// or ends its goroutine. It waits for the lock as Lock does. fn gets the
// lease's context, which is cancelled when the lease is lost.
//
// The error is that of Lock if fn did not run; else that of fn. If the lease
// was lost while fn ran, the error is ErrLost as well, since what fn did may
// not have been alone.
func (l *Locker) Do(ctx context.Context, key string, fn func(ctx context.Context) error) error {
	return l.DoAll(ctx, []string{key}, fn)
}

// DoAll is Do with several keys, each of which is locked. They are taken in
// byte order, so that callers with the same keys in another order do not wait
// for each other, all within one wait, and released together. A key that
// is given twice is locked once. No key at all is ErrNoKey.
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context) error) (err error) {
	all, err := l.acquireAll(ctx, keys, l.waitOr(waitForever))
	if err != nil {
		if l.mayRunUnlocked(err) {
			l.observeUnlocked(keys, err)
			return fn(ctx)
		}
		return err
	}
	defer func() { //nolint:contextcheck // the release does not end with ctx
		if lost := all.release(); lost != nil && !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
	}()
	return fn(all.ctx) //nolint:contextcheck // it is derived from ctx
}

// mayRunUnlocked reports whether a request that met err runs all the same:
// Redis is unavailable, the request is not over, no lease of it was lost, and
// the user asked for it.
func (l *Locker) mayRunUnlocked(err error) bool {
	var detail *Error
	return l.settings.failOpen && isUnavailable(err) && !isLoss(err) && errors.As(err, &detail) && detail.ended == nil
}

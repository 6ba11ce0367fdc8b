package core

import (
	"context"
	"errors"
	"slices"
)

// Enter takes the locks of a request. It returns the context under which to run the request,
// and the function that releases the locks. Every adapter uses it:
//
//	ctx, release, err := core.Enter(r.Context(), locks, r, key)
//	if err != nil {
//		// answer by core.RefusalOf(err)
//	}
//	defer release()
//
// Each key function reads one key. WithWait sets how long Enter waits for all locks together;
// without WithWait it does not wait. Func converts a function of your own that stands beside
// other key functions.
//
// release waits for Redis about as long as one command takes, also for several keys and after
// ctx has ended. It is never nil. It may be called more than once, from any goroutine.
//
// A key function that returns ErrSkip takes no lock. If no function takes a lock, or if Redis
// is unavailable and WithFailOpen is on, the request runs without a lock. In each of these
// cases, Leases returns one entry for each key function.
//
// The error is an error of Lock, ErrBodyTooLarge, or the error of a key function. With an
// error no key is locked. Enter panics if there is no key function.
func Enter[R any, F ~func(R) (K, error), K string | RequestKey](
	ctx context.Context, l *Locker, r R, keys ...F,
) (locked context.Context, release func(), err error) {
	must(len(keys) > 0, "Enter needs a key function")
	var few [4]RequestKey // avoids an allocation for most requests
	read := few[:0]
	for _, key := range keys {
		k, err := readKey((func(R) (K, error))(key), r)
		if err == nil && k.needWait && l.MaxWait() == 0 {
			err = KeyError(errNeedWait)
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrSkip):
			k = RequestKey{} // takes no lock
		default:
			l.observeUnread(ctx, err, false)
			return ctx, nothing, err
		}
		read = append(read, k)
	}
	return l.enter(ctx, read)
}

// enter takes the locks of the keys. A zero Key takes no lock.
func (l *Locker) enter(ctx context.Context, keys []RequestKey) (locked context.Context, release func(), err error) {
	if !slices.ContainsFunc(keys, func(k RequestKey) bool { return k.raw != "" }) {
		return &unlockedContext{ctx, len(keys)}, nothing, nil
	}
	all, err := acquireAll(ctx, l, keys, l.waitOr(0))
	if err != nil {
		if l.mayRunUnlocked(err) {
			observeUnlocked(ctx, l, keys, err)
			return &unlockedContext{ctx, len(keys)}, nothing, nil
		}
		return ctx, nothing, err
	}
	return all.ctx, func() { _ = all.end() }, nil
}

// errNeedWait refuses a key of SharedReads.
var errNeedWait = errors.New("SharedReads needs WithWait above 0: without it, reads can refuse a write for ever")

// nothing is the release function where no lock was taken.
func nothing() {}

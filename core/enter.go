package core

import (
	"context"
	"errors"
)

// Enter takes the locks of a request. It returns the context under which to run the request,
// and the function that releases the locks. Every adapter uses it:
//
//	ctx, release, err := core.Enter(r.Context(), locks, r, key)
//	if err != nil {
//		// answer by core.OutcomeOf(err)
//	}
//	defer release()
//
// Each key function reads one key. WithWait sets how long Enter waits for all locks together;
// without WithWait it does not wait.
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
func Enter[R any](
	ctx context.Context, l *Locker, r R, keys ...KeyFunc[R],
) (locked context.Context, release func(), err error) {
	must(len(keys) > 0, "Enter needs a key function")
	var few [4]string // avoids an allocation for most requests
	names, skipped := few[:0], 0
	for _, key := range keys {
		name, err := key.Read(r)
		switch {
		case err == nil:
		case errors.Is(err, ErrSkip):
			name = noName
			skipped++
		default:
			l.ObserveRefused(err)
			return ctx, nothing, err
		}
		names = append(names, name)
	}
	if skipped == len(keys) {
		return &unlockedContext{ctx, len(keys)}, nothing, nil
	}
	all, err := l.acquireAll(ctx, names, l.waitOr(0))
	if err != nil {
		if l.mayRunUnlocked(err) {
			l.observeUnlocked(names, err)
			return &unlockedContext{ctx, len(keys)}, nothing, nil
		}
		return ctx, nothing, err
	}
	return all.ctx, func() { _ = all.end() }, nil
}

// nothing is the release function where no lock was taken.
func nothing() {}

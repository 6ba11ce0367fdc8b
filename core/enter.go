package core

import (
	"context"
	"errors"
)

// Enter takes the locks of a request and returns the context under which to
// run it, and the function that releases the locks. It is what every adapter
// stands on:
//
//	ctx, release, err := core.Enter(r.Context(), locks, r, key)
//	if err != nil {
//		// answer by core.OutcomeOf(err)
//	}
//	defer release()
//
// It reads a key with each key function, and waits for the locks as long as
// WithWait says; without WithWait it does not wait. release waits for Redis
// about as long as for one command, also for several keys and after ctx has
// ended; it may be called more than once, from any goroutine. It is never nil.
//
// A key function that returns ErrSkip takes no lock. If none takes one, or if
// Redis is unavailable and WithFailOpen is on, the context is ctx itself.
//
// The error is one of Lock's, ErrBodyTooLarge, or what a key function returned.
// With an error nothing is locked. Enter panics without a key function.
func Enter[R any](
	ctx context.Context, l *Locker, r R, keys ...KeyFunc[R],
) (locked context.Context, release func(), err error) {
	must(len(keys) > 0, "Enter needs a key function")
	var few [4]string // so that most requests need no memory for them
	names := few[:0]
	for _, key := range keys {
		name, err := key.Read(r)
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.Is(err, ErrSkip):
			return ctx, nothing, err
		}
	}
	if len(names) == 0 {
		return ctx, nothing, nil
	}
	all, err := l.acquireAll(ctx, names, l.waitOr(0))
	if err != nil {
		if l.mayRunUnlocked(err) {
			l.observeUnlocked(names, err)
			return ctx, nothing, nil
		}
		return ctx, nothing, err
	}
	return all.ctx, func() { _ = all.release() }, nil
}

// nothing releases what was not locked.
func nothing() {}

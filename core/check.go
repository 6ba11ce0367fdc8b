package core

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/internal/redisstore"
)

// Check finds out whether Redis does all that this Locker needs: rights, role,
// version, scripts, pub/sub. It plays the life of a lock and of an idempotent
// request, on a key of its own, the prefix, "check:" and 128 random bits, and
// deletes what is left of it. A fault that is found here would be found later
// by requests.
//
// It takes about 25 round trips, of which none takes longer than
// WithCommandTimeout, two seconds more to find out why there is no answer where
// there is none, and returns at once when ctx ends. On a cluster all masters
// that can hold locks of this prefix are checked at the same time. It is safe for
// concurrent use, and may be called whenever a readiness endpoint is asked; it
// changes nothing for others.
//
// The error is an *Error of the kind ErrUnavailable whose text says what is wrong
// and what to do, with the error of the server or of the Redis client behind it; or
// of the kind ErrClosed. If ctx ended the check, it also is ctx's error. It holds no
// key and no credentials.
//
// The observer is told as Warned where all is well but Redis may evict locks:
// where maxmemory is set and maxmemory-policy is another than noeviction. That is
// read by INFO, and where INFO is refused nothing is said.
func (l *Locker) Check(ctx context.Context) error {
	type found struct{ warning, err error }
	result := make(chan found, 1)
	check := redisstore.NewCheck(l.rdb, l.settings.prefix, l.settings.commandTimeout, l.settings.replicas)
	runs := l.engine.Aside(func() {
		defer check.Close()
		warning, err := check.Run(ctx)
		result <- found{warning, err}
	})
	if !runs {
		return &checkError{"the locker is closed", &Error{Kind: ErrClosed, RetryAfter: l.settings.retryAfter}}
	}
	f := <-result // which does not outlive ctx
	if f.warning != nil {
		l.settings.tell(Event{Kind: Warned, Err: f.warning})
	}
	if f.err != nil {
		return l.checkError(ctx, f.err)
	}
	return nil
}

// checkError words what was found.
func (l *Locker) checkError(ctx context.Context, err error) error {
	e := &Error{Kind: ErrUnavailable, RetryAfter: l.settings.retryAfter, Cause: err}
	var finding *redisstore.Finding
	if errors.As(err, &finding) {
		return &checkError{finding.Error(), e}
	}
	e.ended = ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		e.Cause = errors.Join(err, cause)
	}
	return &checkError{"it was ended before redis had answered: " + err.Error(), e}
}

// A checkError is an Error with a text of its own.
type checkError struct {
	text string
	err  *Error
}

// Error returns what is wrong, and what to do.
func (e *checkError) Error() string { return "reqlock: check: " + e.text }

// Unwrap returns the Error, for errors.Is and errors.As.
func (e *checkError) Unwrap() error { return e.err }

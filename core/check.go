package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/readiness"
)

// Check finds out whether Redis does all that this Locker needs: rights, role,
// version, scripts, pub/sub, and the replicas of WithReplicas. It plays the life of a lock and of an idempotent
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
//
// A Locker of NewQuorum checks all its servers, and is well if a majority is: of
// the others the observer is told as Warned.
func (l *Locker) Check(ctx context.Context) error {
	mustContext(ctx)
	if l.quorum != nil {
		return l.checkQuorum(ctx)
	}
	f := <-l.find(ctx, l.rdb) // which does not outlive ctx
	if f.warning != nil {
		l.settings.notify(Event{Kind: Warned, Err: f.warning})
	}
	if f.err != nil {
		return l.checkError(ctx, f.err)
	}
	return nil
}

// found is what was found out about one Redis.
type found struct{ warning, err error }

// find begins to find out about one Redis.
func (l *Locker) find(ctx context.Context, rdb redis.UniversalClient) <-chan found {
	result := make(chan found, 1)
	check := readiness.NewCheck(rdb, l.settings.prefix, l.settings.commandTimeout, l.settings.replicas)
	runs := l.engine.Go(func() {
		defer check.Close()
		warning, err := check.Run(ctx)
		result <- found{warning, err}
	})
	if !runs {
		result <- found{err: errLockerClosed}
	}
	return result
}

// checkQuorum finds out about all servers of a quorum.
func (l *Locker) checkQuorum(ctx context.Context) error {
	var finding []<-chan found
	for _, client := range l.quorum.Clients() {
		finding = append(finding, l.find(ctx, client))
	}
	var failures, warnings []error
	for i, f := range finding {
		switch f := <-f; {
		case f.err != nil:
			failures = append(failures, &serverError{i, f.err})
		case f.warning != nil:
			warnings = append(warnings, &serverError{i, f.warning})
		}
	}
	if same := l.quorum.Double(); same != nil {
		return &checkError{same.Error(), &Error{Kind: ErrUnavailable, RetryAfter: l.settings.retryAfter, Cause: same}}
	}
	if len(failures) > len(finding)/2 {
		return l.checkError(ctx, failures[0])
	}
	for _, warning := range append(failures, warnings...) {
		l.settings.notify(Event{Kind: Warned, Err: warning})
	}
	return nil
}

// A serverError is what was found out about one server of a quorum.
type serverError struct {
	server int
	err    error
}

// Error names the server by its place among the clients.
func (e *serverError) Error() string {
	return fmt.Sprintf("server %d of the quorum: %s", e.server, e.err.Error())
}

// Unwrap returns what was found out.
func (e *serverError) Unwrap() error { return e.err }

var errLockerClosed = errors.New("the locker is closed")

// checkError words what was found.
func (l *Locker) checkError(ctx context.Context, err error) error {
	if errors.Is(err, errLockerClosed) {
		return &checkError{errLockerClosed.Error(), &Error{Kind: ErrClosed, RetryAfter: l.settings.retryAfter}}
	}
	e := &Error{Kind: ErrUnavailable, RetryAfter: l.settings.retryAfter, Cause: err}
	var finding *readiness.Finding
	if errors.As(err, &finding) {
		return &checkError{err.Error(), e}
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

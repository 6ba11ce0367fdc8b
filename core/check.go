package core

import (
	"context"
	"errors"

	"github.com/reqlock/reqlock/internal/redis/readiness"
)

// Check finds out whether Redis does all that this Locker needs: rights, role, version,
// scripts, pub/sub, and the replicas of WithReplicas. It takes and releases a lock, and runs
// an idempotent request, under a key of its own: the prefix, "check:" and a random UUID. It
// then deletes what is left of the key. If Redis seems to lose keys, it does all this once
// more, under another key. Without Check, requests would find a problem later.
//
// This full run takes about 40 round trips, in which each server executes about 300 commands, those
// of scripts included. After a full run without an error, Checks of the Locker and its views are
// short: 3 or 4 round trips, and 5 to 10 commands on each server. A short run takes and releases
// a lock, and asks the server whether the user still has all rights. It sends no messages. A full run
// follows at once if a short run fails, or if a server was restarted, has another role, or a cluster
// has other masters. It also follows after an hour. A short run uses connections
// of the pool, so it does not notice a new password, or a limit of clients, that only new connections
// meet. Exception: without the right +info, Check does
// not notice a restart or a failover if another process has checked the new server before.
//
// No round trip takes longer than WithCommandTimeout. If there is no reply, Check takes up to two
// seconds more to find out why. It returns at once when ctx ends. On a cluster it checks all masters
// that can hold locks of this prefix at the same time. It is safe for concurrent use, and has no
// effect on other requests.
//
// Call Check when the program starts, and when an operator asks. A readiness endpoint should call it
// only if the service can do nothing without locks: an outage of Redis makes all replicas of the
// service unready at once. A liveness endpoint should never call it.
//
// Checks of a Locker and its views at once share one run: a call while a run is under way gets
// the result of that run. The context of the commands is not that of a caller. The run ends early
// only when the last caller's ctx has ended, or by Close.
//
// The error is an *Error of the kind ErrUnavailable or ErrClosed. Its text says what is wrong
// and what to do, and it wraps the error of the server or of the Redis client. If ctx ended
// the check, it is also ctx's error. It contains no key and no credentials.
//
// If Redis may evict locks, because maxmemory is set and maxmemory-policy is not noeviction,
// the observer receives a Warned event. Check reads this by INFO. If INFO is refused, there
// is no warning.
//
// If processes with clients of one server and with clients of a cluster may share a server, and
// this process has the wrong client, or lacks a right to notify waiters of the others, the
// observer receives a Warned event.
//
// If ContextTimeoutEnabled is off in the options of a client, the observer receives a Warned
// event with the first Check: see New.
//
// A Warned event comes once while its reason lasts. It comes again if the reason was gone in a Check,
// and with other words if it has changed.
//
// On a Locker of NewQuorum, Check checks all servers, and succeeds if a majority does. The
// observer receives a Warned event for each other server.
func (l *Locker) Check(ctx context.Context) error {
	mustContext(ctx)
	run := l.joinCheck()
	if run == nil {
		return l.checkClosed()
	}
	select {
	case <-run.done:
	case <-ctx.Done():
		if !l.checks.leave(run) {
			return l.checkError(ctx, ctx.Err())
		}
		<-run.done // the run ends with its context, and may have a finding
	}
	l.checks.advised.Do(func() {
		if advice := l.backend.advice(); advice != nil {
			l.settings.notifyFrom(ctx, Event{Kind: Warned, Err: advice})
		}
	})
	run.tell.Do(func() {
		for _, warning := range run.warnings {
			l.settings.notifyFrom(ctx, Event{Kind: Warned, Err: warning})
		}
	})
	if run.err != nil {
		return l.checkError(ctx, run.err)
	}
	return nil
}

// checkClosed returns the error of a check of a closed Locker.
func (l *Locker) checkClosed() error {
	return &checkError{"the locker is closed", &Error{Kind: ErrClosed, RetryAfter: l.settings.retryAfter}}
}

// checkError converts the error of a check to an error of this package. If it is no finding, ctx
// or the Locker has ended the check.
func (l *Locker) checkError(ctx context.Context, err error) error {
	e := &Error{Kind: ErrUnavailable, RetryAfter: l.settings.retryAfter, Cause: err}
	var finding *readiness.Finding
	if errors.As(err, &finding) {
		return &checkError{err.Error(), e}
	}
	ended := ctx.Err()
	if ended == nil {
		return l.checkClosed()
	}
	e.ended, e.Cause = ended, ended
	if cause := context.Cause(ctx); !errors.Is(cause, ended) {
		e.Cause = join(ended, cause)
	}
	return &checkError{"it was ended before redis had answered: " + ended.Error(), e}
}

// A checkError is an Error with another text.
type checkError struct {
	text string
	err  *Error
}

// Error returns what is wrong, and what to do.
func (e *checkError) Error() string { return "reqlock: check: " + e.text }

// Unwrap returns the Error, for errors.Is and errors.As.
func (e *checkError) Unwrap() error { return e.err }

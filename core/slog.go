package core

import (
	"errors"
	"log/slog"
)

// SlogObserver returns an observer, for WithObserver, that logs each event. These are logged
// at warning level: a lost lease, a lease that is held long, a lost record, an unknown
// outcome, a run without the lock, a warning of Check or an adapter, a Close that waits for
// holders, the end of a commit that went on, a key that failed with a status of 500 or more, a fault of Redis, and
// ErrUpgrade and ErrHiddenLease, which are mistakes in the program. All other events are
// logged at debug level. Of renewals that fail one after the other, only the first is logged
// at warning level.
//
// Keys appear as digests. The line of an unknown outcome, and that of the end of a commit that
// went on, also have endpoint_key, the digest of EndpointKey in full, for ReadRecord and Resolve.
//
// The logger gets the context of the event: see Event.Context. So a handler that reads the
// trace of a context writes it into the line.
func SlogObserver(logger *slog.Logger) func(Event) {
	must(logger != nil, "SlogObserver needs a logger")
	return func(e Event) {
		level := levelOf(e)
		ctx := e.Context()
		if !logger.Enabled(ctx, level) {
			return
		}
		attrs := make([]slog.Attr, 0, 8)
		if !e.Key.IsEmpty() {
			attrs = append(attrs, slog.String("key", e.Key.String()))
		}
		if e.Name != "" {
			attrs = append(attrs, slog.String("name", e.Name))
		}
		if e.Idempotent {
			attrs = append(attrs, slog.Bool("idempotent", true))
		}
		if e.Shared {
			attrs = append(attrs, slog.Bool("shared", true))
		}
		switch e.Kind {
		case Acquired:
			attrs = append(attrs, slog.Duration("waited", e.Waited), slog.String("grant", e.Grant.String()))
		case Refused, Replayed:
			attrs = append(attrs, slog.Duration("waited", e.Waited))
		case Released, Renewed, Lost, Committed, Restored, OutcomeUnknown:
			attrs = append(attrs, slog.Duration("held", e.Held))
		case HeldLong:
			attrs = append(attrs, slog.Duration("held", e.Held), slog.Bool("repeated", e.Repeated))
		case Closing:
			attrs = append(attrs, slog.Duration("held", e.Held), slog.Int("holds", e.Holds))
		case Waiting, Unlocked, Warned:
		}
		if endpoint, ok := e.Key.EndpointKey(); ok && (e.Kind == OutcomeUnknown || isLateResult(e)) {
			attrs = append(attrs, slog.String("endpoint_key", endpoint))
		}
		if e.Ending != 0 {
			attrs = append(attrs, slog.String("ending", e.Ending.String()))
		}
		if e.Caller != "" {
			attrs = append(attrs, slog.String("caller", e.Caller))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", e.Err.Error()))
		}
		logger.LogAttrs(ctx, level, "lock "+messageOf(e), attrs...)
	}
}

// levelOf returns the warning level for events that an operator should see.
func levelOf(e Event) slog.Level {
	switch e.Kind {
	case Lost, HeldLong, Restored, OutcomeUnknown, Unlocked, Warned, Closing:
		return slog.LevelWarn
	case Refused:
		if isFaultOfServer(e.Err) {
			return slog.LevelWarn
		}
	case Renewed:
		if e.Err != nil && !e.Repeated {
			return slog.LevelWarn
		}
	case Released, Committed:
		if e.Err != nil || isLateResult(e) {
			return slog.LevelWarn
		}
	case Acquired, Waiting, Replayed:
	}
	return slog.LevelDebug
}

// isFaultOfServer reports whether a request was refused because of a fault of Redis, of the key
// function or of the program, and not because of its client, of other requests or of Close.
func isFaultOfServer(err error) bool {
	var fromKey *keyError
	if errors.As(err, &fromKey) {
		return statusOf(fromKey.err) >= 500
	}
	return isUnavailable(err) && !errors.Is(err, ErrClosed) || errors.Is(err, ErrUpgrade) || errors.Is(err, ErrHiddenLease)
}

// isLateResult reports whether the event is the end of a commit that went on, after the outcome
// was reported as unknown.
func isLateResult(e Event) bool { return e.Kind == Committed && e.Repeated }

// messageOf says what happened. An event with an error is about something that was tried.
func messageOf(e Event) string {
	switch {
	case e.Err == nil && isLateResult(e):
		return "committed late"
	case e.Err == nil:
		return e.Kind.String()
	case e.Kind == Committed || e.Kind == Renewed:
		return "not " + e.Kind.String()
	case e.Kind == Released && errors.Is(e.Err, ErrUnavailable):
		return "release not confirmed"
	default:
		return e.Kind.String()
	}
}

package core

import (
	"errors"
	"log/slog"
)

// SlogObserver returns an observer, for WithObserver, that logs each event. These are logged
// at warning level: a lost lease, a lease that is held long, a lost record, an unknown
// outcome, a run without the lock, a warning of Check or an adapter, a Close that waits for
// holders, a key function that failed, a fault of Redis, and ErrNoFence and ErrHiddenLease,
// which are mistakes in the program. All other events are logged at debug level. Keys appear as digests. The line of an unknown outcome also has endpoint_key,
// the whole key of EventKey.Endpoint, for Outcome and Resolve.
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
		if e.Attempt {
			attrs = append(attrs, slog.Bool("attempt", true))
		}
		switch e.Kind {
		case Acquired:
			attrs = append(attrs, slog.Duration("waited", e.Waited), slog.String("handover", e.Handover.String()))
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
		if endpoint, ok := e.Key.Endpoint(); ok && e.Kind == OutcomeUnknown {
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
		var fromKey *keyError
		if isUnavailable(e.Err) || errors.As(e.Err, &fromKey) || errors.Is(e.Err, ErrNoFence) || errors.Is(e.Err, ErrHiddenLease) {
			return slog.LevelWarn
		}
	case Released, Renewed, Committed:
		if e.Err != nil {
			return slog.LevelWarn
		}
	case Acquired, Waiting, Replayed:
	}
	return slog.LevelDebug
}

// messageOf says what happened. An event with an error is about something that was tried.
func messageOf(e Event) string {
	if e.Err == nil {
		return e.Kind.String()
	}
	switch {
	case e.Kind == Committed || e.Kind == Renewed:
		return "not " + e.Kind.String()
	case e.Kind == Released && errors.Is(e.Err, ErrUnavailable):
		return "release not confirmed"
	default:
		return e.Kind.String()
	}
}

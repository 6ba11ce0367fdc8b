package core

import (
	"errors"
	"log/slog"

	"github.com/reqlock/reqlock/internal/engine"
)

// SlogObserver returns an observer, for WithObserver, that logs each event at debug level, except
// those that the logger of WithLogger gets. It logs what an operator changes at INFO, with the attributes
// by, why, before and after of the Change. With the same logger in both, each event has one line:
//
//	core.New(rdb, core.WithLogger(logger), core.WithObserver(core.SlogObserver(logger)))
//
// Keys appear as digests. The logger gets the context of the event: see Event.Context. So a handler
// that reads the trace of a context writes it into the line.
func SlogObserver(logger *slog.Logger) func(Event) {
	must(logger != nil, "SlogObserver needs a logger")
	return func(e Event) {
		level := slog.LevelDebug
		if e.Change != nil {
			level = slog.LevelInfo
		}
		if !isWarning(e) && logger.Enabled(e.Context(), level) {
			logEvent(logger, level, e, nil)
		}
	}
}

// logEvent logs an event, with further attributes.
func logEvent(logger *slog.Logger, level slog.Level, e Event, extra []slog.Attr) {
	attrs := make([]slog.Attr, 0, 8+len(extra))
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
	case Released, HandedOver, Renewed, Lost, Committed, Restored, OutcomeUnknown:
		if e.Held != 0 { // in OutcomeUnknown it may be unknown
			attrs = append(attrs, slog.Duration("held", e.Held))
		}
	case HeldLong:
		attrs = append(attrs, slog.Duration("held", e.Held), slog.Bool("repeated", e.Repeated))
	case Closing:
		attrs = append(attrs, slog.Duration("held", e.Held), slog.Int("holds", e.Holds))
	case Searched:
		attrs = append(attrs, slog.Int("open", e.Open), slog.Duration("took", e.Took))
	case Outage:
		attrs = append(attrs, slog.String("server", e.Server))
	case Recovered:
		attrs = append(attrs, slog.String("server", e.Server), slog.Duration("lasted", e.Lasted),
			slog.Int("refused", e.Refused), slog.Int("unlocked", e.Unlocked))
	case Waiting, Unlocked, Warned, Registered, OperatorResolved, OperatorRevoked, OperatorFreed:
	}
	if c := e.Change; c != nil {
		attrs = append(attrs, slog.String("by", c.By), slog.String("why", c.Why), slog.String("before", c.Before), slog.String("after", c.After))
	}
	if endpoint, ok := e.Key.EndpointKey(); ok && (e.Kind == OutcomeUnknown || e.Kind == OperatorResolved || isLateResult(e)) {
		attrs = append(attrs, slog.String("endpoint_key", endpoint))
	}
	if e.Attempt != (AttemptID{}) {
		attrs = append(attrs, slog.String("attempt", e.Attempt.String()))
		if e.Kind == OutcomeUnknown {
			attrs = append(attrs, slog.Duration("age", e.Age))
		}
	}
	if action := actionOf(e); action != "" {
		extra = append(extra, slog.String("action", action))
	}
	if e.First != "" {
		attrs = append(attrs, slog.String("first", e.First))
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
	logger.LogAttrs(e.Context(), level, messageOf(e), append(attrs, extra...)...)
}

// actionOf says what an operator has to do about an event whose Err does not say it; "" is nothing.
func actionOf(e Event) string {
	var commit *commitError
	switch {
	case e.Kind == OutcomeUnknown && errors.As(e.Err, &commit) && commit.goesOn:
		return "wait for the line committed late; if none comes, find out whether the request took effect, and call Resolve"
	case e.Kind == OutcomeUnknown:
		return "find out whether the request took effect, and call Resolve before its retention ends"
	case isLateResult(e) && e.Err == nil:
		return "none: the outcome is known now"
	case e.Kind == Restored:
		return "redis had lost the record of a running request, and has it again: check its persistence, evictions and failovers"
	case e.Kind == Lost && errors.Is(e.Err, ErrLost) && !errors.Is(e.Err, ErrMaxHold):
		return "another holder may have run meanwhile: redis was away, this process was paused, the key was deleted, or an operator ended the lease (reqlock free)"
	}
	return ""
}

// isWarning reports whether an operator should see the event. The single failures of an outage are
// part of its Outage and its Recovered.
func isWarning(e Event) bool {
	switch e.Kind {
	case Lost, HeldLong, Restored, OutcomeUnknown, Warned, Closing, Outage, Recovered:
		return true
	case Refused, Released: // a Released after a loss comes after its Lost
		return isUnavailable(e.Err) && !errors.Is(e.Err, ErrClosed) && !engine.IsOutage(e.Err)
	case Unlocked:
		return !engine.IsOutage(e.Err)
	case Renewed:
		return e.Err != nil && !e.Repeated && !engine.IsOutage(e.Err)
	case Committed:
		return isLateResult(e) || e.Err != nil && !engine.IsOutage(e.Err)
	case Acquired, Waiting, Replayed, Registered, Searched, HandedOver, OperatorResolved, OperatorRevoked, OperatorFreed:
	}
	return false
}

// isLateResult reports whether the event is the end of a commit that went on, after the outcome
// was reported as unknown.
func isLateResult(e Event) bool { return e.Kind == Committed && e.Repeated }

// messageOf says what happened. An event with an error is about something that was tried.
func messageOf(e Event) string {
	switch {
	case e.Kind == Outage:
		return "redis outage began"
	case e.Kind == Recovered:
		return "redis outage is over"
	case e.Err == nil && isLateResult(e):
		return "lock committed late"
	case e.Err != nil && (e.Kind == Committed || e.Kind == Renewed):
		return "lock not " + e.Kind.String()
	case e.Kind == Released && errors.Is(e.Err, ErrUnavailable):
		return "lock release not confirmed"
	case e.Err != nil && e.Change != nil:
		return "lock " + e.Kind.String() + " not confirmed"
	default:
		return "lock " + e.Kind.String()
	}
}

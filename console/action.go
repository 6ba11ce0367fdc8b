package console

import (
	"context"
	"log/slog"

	"github.com/reqlock/reqlock/inspect"
)

// An ActionKind is one of the actions of an operator.
type ActionKind int

// The actions.
const (
	// Revoke ends leases as inspect.Inspector.Revoke does: nobody overlaps with the holder.
	Revoke ActionKind = iota + 1
	// HandOver ends leases at once, as inspect.Inspector.HandOver does: for a holder that is dead.
	HandOver
	// Resolve ends an unknown outcome: by core.Done or by core.NotDone.
	Resolve
)

// String returns the kind as in a line of the log.
func (k ActionKind) String() string {
	switch k {
	case Revoke:
		return "revoke"
	case HandOver:
		return "hand_over"
	case Resolve:
		return "resolve"
	default:
		return "invalid"
	}
}

// kindOf returns the kind with this name, or 0.
func kindOf(name string) ActionKind {
	for kind := Revoke; kind <= Resolve; kind++ {
		if kind.String() == name {
			return kind
		}
	}
	return 0
}

// An Action is what an operator has done, or has tried to do.
type Action struct {
	// Kind says what the operator wanted.
	Kind ActionKind
	// Actor is the result of the function of WithActor.
	Actor string
	// Reason is what the operator has typed, at most 500 bytes.
	Reason string
	// Key is the key of the lock, also of an idempotent request. It prints as its digest.
	Key inspect.Key
	// Resolution is "done" or "not_done" if Kind is Resolve.
	Resolution string
	// Before and After say in words what the lock or the record was. After is "" if it could not be read.
	Before, After string
	// Err is nil if the action was carried out. If it is core.ErrUnavailable, the action may have taken effect.
	Err error
}

// logAction writes the action as a line of the log.
func logAction(ctx context.Context, a Action) {
	attrs := []slog.Attr{
		slog.String("action", a.Kind.String()), slog.String("key", a.Key.String()),
		slog.String("actor", a.Actor), slog.String("reason", a.Reason),
	}
	if a.Resolution != "" {
		attrs = append(attrs, slog.String("resolution", a.Resolution))
	}
	attrs = append(attrs, slog.String("before", a.Before), slog.String("after", a.After))
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()))
	}
	slog.Default().LogAttrs(ctx, slog.LevelInfo, "lock action", attrs...)
}

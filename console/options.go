package console

import (
	"errors"
	"fmt"
	"net/http"
)

// An ActionKind is one of the actions of an operator.
type ActionKind int

// The actions.
const (
	// Revoke ends leases as inspect.Inspector.Revoke does: nobody overlaps with the holder.
	Revoke ActionKind = iota + 1
	// FreeNow ends leases at once, as inspect.Inspector.FreeNow does: for a holder that is dead.
	FreeNow
	// Resolve ends an unknown outcome: by core.Done or by core.NotDone.
	Resolve
)

// String returns the kind as in a form.
func (k ActionKind) String() string {
	switch k {
	case Revoke:
		return "revoke"
	case FreeNow:
		return "free_now"
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

// An Option changes a setting of a Console.
type Option func(*settings) error

// settings are what the options set.
type settings struct {
	actions [Resolve + 1]bool // by ActionKind
	actor   func(*http.Request) string
	rawKeys bool
}

// canAct reports whether any action is allowed.
func (s *settings) canAct() bool {
	return s.actions[Revoke] || s.actions[FreeNow] || s.actions[Resolve]
}

// WithActions allows these actions to everybody who reaches the Console. It needs WithActor. Other
// actions, and all of them without the option, are answered with 403.
func WithActions(kinds ...ActionKind) Option {
	return func(s *settings) error {
		for _, kind := range kinds {
			if kind < Revoke || kind > Resolve {
				return fmt.Errorf("reqlock: WithActions: there is no action %d", kind)
			}
			s.actions[kind] = true
		}
		return nil
	}
}

// WithActor sets the function that says who acts: usually the name of the user that the middleware in
// front of the Console has found out. If it returns "", the action is answered with 403. The name and the
// reason that the operator types are those of core.AsOperator, so the event of the action has both: see
// inspect.WithObserver. The function may be called by several goroutines at once.
func WithActor(actor func(*http.Request) string) Option {
	return func(s *settings) error {
		if actor == nil {
			return errors.New("reqlock: WithActor: the function is nil")
		}
		s.actor = actor
		return nil
	}
}

// WithRawKeys shows each key beside its digest. Keys may hold personal data. Addresses of pages have only
// the digest.
func WithRawKeys() Option {
	return func(s *settings) error {
		s.rawKeys = true
		return nil
	}
}

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// WithReference notes a reference of each idempotent request in its record, such as the id of its trace:
// none if not set. A copy learns it: Event.First of its Replayed, Refused or OutcomeUnknown says which
// request was the first one, and so does Record.First. Middlewares that only lock refuse the option.
//
//	core.WithReference(otellock.Reference) // the trace and the span of the first request
//	core.WithReference(func(ctx context.Context) string { return middleware.GetReqID(ctx) }) // of chi
//
// of gets the context that was given to Begin; a middleware gives that of its request, as c.Request.Context()
// of Gin or c.Context() of Fiber, which has no value of c.Set or c.Locals. It is called for each request, also
// for a copy, and must be safe for concurrent use. It returns at most 64 bytes of printable ASCII, or "" for
// none. Any other text, and a panic, count as "", and the observers get one Warned event for each of these
// mistakes: the request runs.
//
// The reference is stored as it is, also with WithSealer, and it is in logs: it must be no secret. A
// process without the option reads what other processes have noted. If a request runs again after an attempt
// that died, as WithRerunUnknown allows, its record has the reference of the attempt that runs. A nil of is an
// error.
func WithReference(of func(ctx context.Context) string) Option {
	return ofAttempts("WithReference", func(s *settings) error {
		s.reference = of
		return notNil("WithReference", of == nil)
	})
}

// WithFirstShown sets whether the refusal of a copy tells its client the reference of the first request:
// off if not set, because the reference is an id of the server, or of another client with the same key. If
// it is on, Refusal.First has it: as the member "first" of a problem document, and as "first" in the
// metadata of the ErrorInfo of an RPC. See WithReference. Middlewares that only lock refuse the option.
func WithFirstShown(on bool) Option {
	return ofIdempotent("WithFirstShown", func(s *bridge.Settings) error {
		s.FirstShown = on
		return nil
	})
}

// referenceOf returns the reference of the request with this context, or "". A mistake of the function of
// WithReference is no reason to refuse the request.
func (l *Locker) referenceOf(ctx context.Context) (reference string) {
	of := l.settings.reference
	if of == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			reference = ""
			l.warnReference("panic", errReferencePanic)
		}
	}()
	reference = of(ctx)
	switch {
	case reference == "", engine.IsReference(reference):
		return strings.Clone(reference) // Fiber uses the memory of its texts for the next request, too
	case len(reference) > engine.MaxReference:
		l.warnReference("long", fmt.Errorf("reqlock: WithReference: a reference of %d bytes is left out: return at most %d",
			len(reference), engine.MaxReference))
	default:
		l.warnReference("not printed", errReferenceText)
	}
	return ""
}

var (
	errReferencePanic = errors.New("reqlock: WithReference: the function has panicked, and the reference is left out")
	errReferenceText  = errors.New("reqlock: WithReference: a reference is left out, because it has other characters than printable ones of ASCII")
)

// A badReference is what referenceOf warns of once.
type badReference struct{ mistake string }

// warnReference warns of a mistake, once. The text does not contain the reference.
func (l *Locker) warnReference(mistake string, err error) { l.warn(badReference{mistake}, err) }

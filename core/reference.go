package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/engine"
)

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

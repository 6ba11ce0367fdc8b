package httpreply

import (
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
)

// A Document is a problem document as a value, for frameworks in which the application
// renders errors. It is safe for concurrent use.
type Document struct {
	outcome  core.Refusal
	rendered atomic.Bool
}

// NewDocument returns the problem document of an outcome.
func NewDocument(o core.Refusal) *Document { return &Document{outcome: o} }

// MarshalJSON returns the text of the document.
func (d *Document) MarshalJSON() ([]byte, error) {
	d.rendered.Store(true)
	return Body(d.outcome), nil
}

// Rendered reports whether the document was rendered, so that the answer's media type is
// ContentType.
func (d *Document) Rendered() bool { return d.rendered.Load() }

// String returns the outcome's code, for answers in plain text and for logs.
func (d *Document) String() string { return d.outcome.Code }

package echolock

import (
	"sync/atomic"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A problem is the problem document of a refusal as a value, which Echo renders. It is safe for
// concurrent use.
type problem struct {
	refusal  core.Refusal
	rendered atomic.Bool // so the media type of the answer is adapter.ProblemType
}

// MarshalJSON returns the text of the document, or null for a client that has disconnected.
func (p *problem) MarshalJSON() ([]byte, error) {
	p.rendered.Store(true)
	if text := adapter.Problem(p.refusal); text != nil {
		return text, nil
	}
	return []byte("null"), nil
}

// String returns the code of the refusal, for answers in plain text and for logs.
func (p *problem) String() string { return p.refusal.Code }

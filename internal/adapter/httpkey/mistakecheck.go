package httpkey

import (
	"errors"
	"fmt"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// A mistake is the error of a key function or a fingerprint that the program has caused. It is
// comparable, and contains nothing from the request.
type mistake interface {
	error
	// warning says which requests are refused, and what to write.
	warning(a registration.Adapter) string
}

// A MistakeCheck warns of mistakes: once of each, so that its memory is bounded by the key
// functions and the routes of the program. It is safe for concurrent use.
type MistakeCheck struct {
	adapter registration.Adapter
	warn    func(error)
	warned  sync.Map // the keys are mistakes
}

// NewMistakeCheck returns the check of a middleware of the adapter.
func NewMistakeCheck(adapter registration.Adapter, l *core.Locker) *MistakeCheck {
	return &MistakeCheck{adapter: adapter, warn: l.Warn}
}

// Check warns if err, with which a request is refused, is a mistake.
func (c *MistakeCheck) Check(err error) {
	var found mistake
	if !errors.As(err, &found) {
		return
	}
	if _, again := c.warned.LoadOrStore(found, nil); again {
		return
	}
	c.warn(fmt.Errorf("reqlock: %s: %s", c.adapter, found.warning(c.adapter)))
}

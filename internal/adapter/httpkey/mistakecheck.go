package httpkey

import (
	"errors"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A mistake is the error of a key or a fingerprint that the program has caused. It is
// comparable, and contains nothing from the request.
type mistake interface {
	error
	// warning says which requests are refused, and what to write.
	warning(n adapter.Name) string
}

// A MistakeCheck warns of mistakes: once of each, so that its memory is bounded by the keys
// and the routes of the program. It is safe for concurrent use.
type MistakeCheck struct {
	adapter adapter.Name
	locker  *core.Locker
}

// A mistakeOf is what a MistakeCheck warns of once.
type mistakeOf struct {
	check *MistakeCheck
	mistake
}

// NewMistakeCheck returns the check of a middleware of the adapter.
func NewMistakeCheck(n adapter.Name, l *core.Locker) *MistakeCheck {
	return &MistakeCheck{n, l}
}

// Check warns if err, with which a request is refused, is a mistake.
func (c *MistakeCheck) Check(err error) {
	var found mistake
	if errors.As(err, &found) {
		adapter.Warn(c.locker, mistakeOf{c, found}, c.adapter.Errorf("%s", found.warning(c.adapter)))
	}
}

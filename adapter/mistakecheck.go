package adapter

import (
	"errors"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/httpbody"
)

// A mistake is the error of a key or a fingerprint that the program has caused. It is
// comparable, and contains nothing from the request.
type mistake interface {
	// Warning says which requests are refused, and what to write. adapter is the name of a package.
	Warning(adapter string) string
}

// mistakeIn returns the mistake that an error is, or wraps, or nil.
func mistakeIn(err error) mistake {
	var name misnamed
	var body httpbody.ConsumedError
	switch {
	case errors.As(err, &name):
		return name
	case errors.As(err, &body):
		return body
	}
	return nil
}

// A mistakeCheck warns of mistakes: once of each, so that its memory is bounded by the keys
// and the routes of the program. It is safe for concurrent use.
type mistakeCheck struct {
	adapter Name
	locker  *core.Locker
}

// A mistakeOf is what a mistakeCheck warns of once.
type mistakeOf struct {
	by *mistakeCheck
	mistake
}

// newMistakeCheck returns the check of a middleware of the adapter.
func newMistakeCheck(n Name, l *core.Locker) *mistakeCheck {
	return &mistakeCheck{n, l}
}

// check warns if err, with which a request is refused, is a mistake.
func (c *mistakeCheck) check(err error) {
	if found := mistakeIn(err); found != nil {
		Warn(c.locker, mistakeOf{c, found}, c.adapter.Errorf("%s", found.Warning(string(c.adapter))))
	}
}

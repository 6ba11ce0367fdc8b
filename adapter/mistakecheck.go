package adapter

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/httpbody"
	"github.com/reqlock/reqlock/internal/kind"
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
	var read kind.Mistake
	switch {
	case errors.As(err, &name):
		return name
	case errors.As(err, &body):
		return body
	case errors.As(err, &read):
		call, part := bridge.DescriptionOf(err)
		if isEmpty := errors.Is(read.Kind, core.ErrNoKey); !isEmpty || part == "" { // otherwise the client sends it
			return keyMistake{call, read}
		}
	}
	return nil
}

// A keyMistake is the mistake in a key, or in the fingerprint if there is no call.
type keyMistake struct {
	call string
	kind.Mistake
}

// Warning is that of a mistake.
func (m keyMistake) Warning(string) string {
	text := cmp.Or(m.call, "the fingerprint") + " refuses requests, because " + m.Cause
	if m.Fix != "" {
		text += ": " + m.Fix
	}
	return text
}

// A failing is a key or a fingerprint of the program that fails with an error of its own. The text of
// that error may be from the request, so the warning does not have it.
type failing struct{ call string }

// Warning is that of a mistake.
func (m failing) Warning(string) string {
	return cmp.Or(m.call, "the fingerprint") + " refuses requests with key_error, because it fails with an error of its own: " +
		"core.SlogObserver logs it, at debug level. Return core.ErrNoKey or core.ErrInvalidKey if the client can mend the request"
}

// A nested is an idempotent middleware inside another one for the same key.
type nested struct{ name string }

// Warning is that of a mistake.
func (m nested) Warning(string) string {
	return "two idempotent middlewares run " + cmp.Or(m.name, "a route without a pattern") + " with the same key, of which the inner one only costs: " +
		"it reads the fingerprint and records the answer again. Leave one of them out"
}

// A lockedTwice is a lock middleware inside another one with the same key.
type lockedTwice struct{ key string }

// Warning is that of a mistake.
func (m lockedTwice) Warning(string) string {
	return "two middlewares lock a request with the key " + m.key + ", of which the inner one has no effect, with all its options: leave one of them out"
}

// A timeoutInside is an http.TimeoutHandler that frees the key of a request which still runs.
type timeoutInside struct{}

// Warning is that of a mistake.
func (timeoutInside) Warning(string) string {
	return "an http.TimeoutHandler inside Idempotent frees the key by its 503 while the handler still runs, so that a copy runs beside it: " +
		"put the TimeoutHandler outside"
}

// A mistakeCheck warns of mistakes: once of each, so that its memory is bounded by the keys
// and the routes of the program. It is safe for concurrent use.
type mistakeCheck struct {
	adapter Name
	locker  *core.Locker
	isRPC   bool
}

// A mistakeOf is what a mistakeCheck warns of once.
type mistakeOf struct {
	by *mistakeCheck
	mistake
}

// newMistakeCheck returns the check of a middleware of the adapter.
func newMistakeCheck(n Name, l *core.Locker, isRPC bool) *mistakeCheck {
	return &mistakeCheck{n, l, isRPC}
}

// check warns if err, with which a request is refused, is a mistake. For HTTP it leaves an empty key to
// refuses.
func (c *mistakeCheck) check(err error) {
	if errors.Is(err, core.ErrSkip) {
		return
	}
	if found := mistakeIn(err); found != nil && (c.isRPC || !errors.Is(err, kind.ErrEmpty)) {
		c.warn(found)
	}
}

// unlessEnded returns the check, or nil if a request is refused because its context has ended.
func (c *mistakeCheck) unlessEnded(ctx context.Context, err error) *mistakeCheck {
	if kind.IsEndOf(ctx, err) {
		return nil
	}
	return c
}

// refuses warns if the middleware answers a request for which a function of the program has returned an
// empty key. Such a function may also have answered by itself. nil does nothing.
func (c *mistakeCheck) refuses(err error) {
	if c == nil || !errors.Is(err, kind.ErrEmpty) {
		return
	}
	if found := mistakeIn(err); found != nil {
		c.warn(found)
	}
}

// answered warns if reqlock has answered with a fault of the server because the program has failed. It
// does not if the program has answered, because that may be its way to refuse a request. nil does
// nothing.
func (c *mistakeCheck) answered(err error, refusal core.Refusal) {
	switch {
	case c == nil || refusal.HTTP < http.StatusInternalServerError || mistakeIn(err) != nil:
	case refusal.Code == "internal":
		bridge.WarnForeign(c.locker)
	case refusal.Code == "key_error":
		call, _ := bridge.DescriptionOf(err)
		c.warn(failing{call})
	}
}

// checkNested warns if an attempt is nested in another one for the same key. name is that of its route.
func (c *mistakeCheck) checkNested(a *core.Attempt, name string) {
	if bridge.IsNested(a) {
		c.warn(nested{name})
	}
}

// checkTwice warns if a middleware outside with the same key has taken the locks for the request with the
// target.
func (c *mistakeCheck) checkTwice(held bridge.Held, target string) {
	if bridge.IsTwice(held, c.locker, target) {
		c.warn(lockedTwice{bridge.SettingsOf(c.locker).Key})
	}
}

// warn sends the event.
func (c *mistakeCheck) warn(m mistake) {
	Warn(c.locker, mistakeOf{c, m}, c.adapter.Errorf("%s", m.Warning(string(c.adapter))))
}

package httpattempt

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/keytext"
)

// An Endpoint makes the requests of a route idempotent. It is safe for concurrent use.
type Endpoint[R any] struct {
	locker   *core.Locker
	key      *bridge.Bound[R]
	body     BodyFunc[R]
	settings settings[R]
	// uncovered is nil if the application has chosen the methods.
	uncovered *uncovered
	wait      *httpreply.WaitCheck
	mistakes  *httpkey.MistakeCheck
}

// A BodyFunc reads the body of a framework's request as httpkey.ReadBody does.
type BodyFunc[R any] func(r R, limit int64) ([]byte, error)

// New returns an Endpoint of the Locker with the options, or an error that names the wrong setting.
func New[R any](
	n adapter.Name, l *core.Locker, key core.Key[R], body BodyFunc[R], opts []core.Option,
) (*Endpoint[R], error) {
	l, err := registration.IdempotentView(n, "Idempotent", bridge.HTTPIdempotent, l, key, opts)
	if err != nil {
		return nil, err
	}
	s, err := settingsOf[R](n, l)
	if err != nil {
		return nil, err
	}
	var missed *uncovered
	if bridge.SettingsOf(l).Methods == nil {
		missed = &uncovered{adapter: n, locker: l}
	}
	return &Endpoint[R]{
		locker:    l,
		key:       bridge.Bind(l, key).(*bridge.Bound[R]), //nolint:forcetypeassert // see bridge
		body:      body,
		settings:  s,
		uncovered: missed,
		wait:      httpreply.NewWaitCheck(n, l),
		mistakes:  httpkey.NewMistakeCheck(n, l),
	}, nil
}

// Locker returns the Locker with the options.
func (e *Endpoint[R]) Locker() *core.Locker { return e.locker }

// Begin begins the attempt of a request. r and request are the same request, for net/http
// and for the framework. route is the name of the route as the framework writes it. pattern
// is the part of the route that the program has written, and "" if there is none: unlike
// route, it never contains text of the client.
//
// If a PUT or DELETE is not covered, and the application has not chosen the methods, the
// observer gets a warning, once for each pattern.
//
// If the error is core.ErrSkip, the request runs as without Idempotent. Any other error
// refuses the request: core.RefusalOf knows the error, or the server caused it.
func (e *Endpoint[R]) Begin(r *http.Request, request R, pattern, route string) (*Exchange, error) {
	e.wait.Check(r)
	if !e.covers(r) {
		if e.uncovered != nil {
			e.uncovered.note(strings.ToUpper(r.Method), pattern)
		}
		return nil, core.ErrSkip
	}
	key, err := e.key.ReadOne(r.Context(), request)
	if err != nil {
		e.mistakes.Check(err)
		return nil, err
	}
	fingerprint, err := e.fingerprint(r, request)
	if err != nil {
		e.key.Refuse(r.Context(), err)
		e.mistakes.Check(err)
		return nil, err
	}
	if e.settings.fingerprint != nil { // the default fingerprint has read the body
		e.wait.CheckBody(r)
	}
	begun, err := e.key.Begin(r.Context(), key, strings.ToUpper(r.Method), route, fingerprint)
	if err != nil {
		return nil, err
	}
	attempt := begun.(*core.Attempt) //nolint:forcetypeassert // see bridge
	s := &e.settings
	x := &Exchange{attempt: attempt, filter: s.filter, unknown: s.unknown, stored: s.stored, custom: s.custom}
	if replay, done := attempt.Replay(); done {
		if x.answer, err = answer.Decode(replay); err != nil {
			// The handler has run, even if its record cannot be read.
			return nil, &core.Error{Kind: core.ErrUnreplayable, Cause: err}
		}
		x.replayed = true
	}
	return x, nil
}

// covers reports whether a request is idempotent by its key. It is true for an empty or
// malformed key, which is refused when the key is read.
func (e *Endpoint[R]) covers(r *http.Request) bool {
	if !slices.Contains(e.settings.methods, strings.ToUpper(r.Method)) {
		return false
	}
	given := func(name string) bool { return len(r.Header.Values(name)) > 0 }
	return len(e.settings.optionalKey) == 0 || slices.ContainsFunc(e.settings.optionalKey, given)
}

// fingerprint returns the digest that differs between requests with the same key. Its error
// names the option for it.
func (e *Endpoint[R]) fingerprint(r *http.Request, request R) ([]byte, error) {
	if own := e.settings.fingerprint; own != nil {
		return keytext.ReadFor("WithFingerprint()", "", request, own)
	}
	limit := cmp.Or(e.settings.maxBody, bridge.DefaultMaxBody)
	limited := fmt.Sprintf("WithMaxBody(%d)", limit)
	body, err := keytext.ReadFor(limited, "the body", request, func(r R) ([]byte, error) { return e.body(r, limit) })
	if err != nil {
		return nil, err
	}
	return Fingerprint(r, body)
}

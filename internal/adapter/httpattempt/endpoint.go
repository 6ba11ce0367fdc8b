package httpattempt

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/answer"
)

// An Endpoint makes the requests of a route idempotent. It is safe for concurrent use.
type Endpoint[R any] struct {
	locker   *core.Locker
	key      core.KeyFunc[R]
	body     BodyFunc[R]
	settings Settings[R]
	filter   answer.Filter
	// uncovered is nil if the application has chosen the methods.
	uncovered *uncovered
	wait      *httpreply.WaitCheck
	mistakes  *httpkey.MistakeCheck
}

// A BodyFunc reads the body of a framework's request as httpkey.ReadBody does.
type BodyFunc[R any] func(r R, limit int64) ([]byte, error)

// New returns an Endpoint, or an error that names the wrong setting.
func New[R any](
	a registration.Adapter, l *core.Locker, key core.KeyFunc[R], body BodyFunc[R], s Settings[R],
) (*Endpoint[R], error) {
	if l.FailsOpen() {
		return nil, fmt.Errorf("reqlock: %s: Idempotent cannot run without Redis, as WithFailOpen asks", a)
	}
	if !l.KeepsRecords() {
		return nil, fmt.Errorf("reqlock: %s: Idempotent needs a locker of core.New: a quorum keeps no records of requests", a)
	}
	if l.SharesLocks() {
		return nil, fmt.Errorf("reqlock: %s: Idempotent needs a locker without WithPermits and WithShared: a request has its key alone", a)
	}
	var missed *uncovered
	if s.Methods == nil {
		missed = &uncovered{adapter: a, warn: l.Warn}
	}
	if err := s.complete(a); err != nil {
		return nil, err
	}
	return &Endpoint[R]{
		locker:    l,
		key:       key,
		body:      body,
		settings:  s,
		filter:    answer.Filter{}.Also(s.ReplayedHeaders...),
		uncovered: missed,
		wait:      httpreply.NewWaitCheck(a, l),
		mistakes:  httpkey.NewMistakeCheck(a, l),
	}, nil
}

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
	key, err := e.key.Read(request)
	if err != nil {
		e.locker.ObserveRefused(r.Context(), err)
		e.mistakes.Check(err)
		return nil, err
	}
	fingerprint, err := e.fingerprint(r, request)
	if err != nil {
		e.locker.ObserveRefused(r.Context(), err)
		e.mistakes.Check(err)
		return nil, err
	}
	if e.settings.Fingerprint != nil { // the default fingerprint has read the body
		e.wait.CheckBody(r)
	}
	attempt, err := e.locker.BeginKey(r.Context(), key.Endpoint(strings.ToUpper(r.Method), route), fingerprint)
	if err != nil {
		return nil, err
	}
	x := &Exchange{attempt: attempt, filter: e.filter, unknown: e.settings.Unknown, stored: e.settings.Stored, custom: e.settings.custom}
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
	if !slices.Contains(e.settings.Methods, strings.ToUpper(r.Method)) {
		return false
	}
	given := func(name string) bool { return len(r.Header.Values(name)) > 0 }
	return len(e.settings.OptionalKey) == 0 || slices.ContainsFunc(e.settings.OptionalKey, given)
}

// fingerprint returns the digest that differs between requests with the same key. Its error
// names the option for it.
func (e *Endpoint[R]) fingerprint(r *http.Request, request R) ([]byte, error) {
	if own := e.settings.Fingerprint; own != nil {
		return keypart.ReadFor("WithFingerprint()", "", request, own)
	}
	limited := fmt.Sprintf("WithMaxBody(%d)", e.settings.MaxBody)
	body, err := keypart.ReadFor(limited, "the body", request, func(r R) ([]byte, error) { return e.body(r, e.settings.MaxBody) })
	if err != nil {
		return nil, err
	}
	return Fingerprint(r, body)
}

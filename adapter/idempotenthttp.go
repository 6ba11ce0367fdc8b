package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/keytext"
)

// An IdempotentHTTP is a middleware that runs the requests of an HTTP framework once for their key,
// with the options of core for Idempotent. It is safe for concurrent use.
type IdempotentHTTP[R any] struct {
	locker   *core.Locker
	key      *bridge.Bound[R]
	request  Accessors[R]
	settings settings[R]
	// uncovered is nil if the application has chosen the methods.
	uncovered *uncovered
	wait      *waitCheck
	mistakes  *mistakeCheck
	names     routeNames
}

// NewIdempotentHTTP checks the arguments of a middleware as NewLock does. It also refuses a Locker
// that runs requests without Redis, shares its locks or keeps no records, a key of core.All or with
// Permits, Shared or SharedWhen, a function of core.WithFingerprint for requests of another type
// than R, and Accessors that lack a function.
func NewIdempotentHTTP[R any](
	n Name, middleware string, l *core.Locker, key core.Key[R], request Accessors[R], opts []core.Option,
) (*IdempotentHTTP[R], error) {
	l, err := idempotentView(n, middleware, bridge.HTTPIdempotent, l, key, opts)
	if err != nil {
		return nil, err
	}
	s, err := settingsOf[R](n, l)
	if err != nil {
		return nil, err
	}
	if name := missingIn(request); name != "" {
		return nil, n.Errorf("%s needs the function %s of its Accessors", middleware, name)
	}
	var missed *uncovered
	if bridge.SettingsOf(l).Methods == nil {
		missed = &uncovered{adapter: n, locker: l}
	}
	return &IdempotentHTTP[R]{
		locker:    l,
		key:       bind(l, key, true),
		request:   request,
		settings:  s,
		uncovered: missed,
		wait:      newWaitCheck(n, l),
		mistakes:  newMistakeCheck(n, l, false),
	}, nil
}

// Locker returns the Locker with the options of the middleware.
func (m *IdempotentHTTP[R]) Locker() *core.Locker { return m.locker }

// Begin begins the attempt of a request. If the Exchange is nil and there is no error, the request
// runs as without the middleware: its method is not covered, or it needs no key. With an error the
// request is refused. The Entry is valid in each case.
//
// If a PUT or DELETE is not covered, and the program has not chosen the methods, the observers get a
// core.Warned event, once for each pattern, and those of Lock.Enter. They get one of an attempt inside
// another one with the same key, too.
//
// Events have the name of core.WithName or Named, or else the method and the Pattern of the Accessors.
func (m *IdempotentHTTP[R]) Begin(ctx context.Context, r R) (Entry, *Exchange, error) {
	m.wait.check(ctx)
	entry := Entry{pass: newPass(ctx, false), mistakes: m.mistakes}
	entry.ctx = entry.pass.within(ctx)
	x, err := m.begin(entry.ctx, r) //nolint:contextcheck // derived from ctx
	if err != nil && !errors.Is(err, core.ErrSkip) {
		entry.pass.refuseBecauseOf(err)
		entry.mistakes = m.mistakes.unlessEnded(ctx, err)
		return entry, nil, err
	}
	entry.pass.run()
	if x != nil {
		x.entry = entry
	}
	return entry, x, nil
}

// begin is Begin for a request with the context of its Entry.
func (m *IdempotentHTTP[R]) begin(ctx context.Context, r R) (*Exchange, error) {
	method := strings.ToUpper(m.request.Method(r))
	if !m.covers(method, r) {
		if m.uncovered != nil {
			m.uncovered.note(method, m.request.Pattern(r))
		}
		return nil, core.ErrSkip
	}
	name := m.names.of(method, m.request.Pattern(r))
	key, err := m.key.ReadOne(ctx, r, name)
	if err != nil {
		m.mistakes.check(err)
		return nil, err
	}
	fingerprint, err := m.fingerprint(r)
	if err != nil {
		err = m.key.Refuse(ctx, key, err)
		m.mistakes.check(err)
		return nil, err
	}
	if m.settings.fingerprint != nil && m.request.request != nil { // the default fingerprint has read the body
		m.wait.checkBody(m.request.request(r))
	}
	begun, err := m.key.Begin(ctx, key, method, m.request.Route(r), fingerprint)
	if err != nil {
		return nil, err
	}
	attempt := begun.(*core.Attempt) //nolint:forcetypeassert // see bridge
	m.mistakes.checkNested(attempt, name)
	s := &m.settings
	x := &Exchange{attempt: attempt, filter: s.filter, unknown: s.unknown, stored: s.stored, custom: s.custom}
	if name == "" {
		x.unnamed, x.method = &m.names, method
	}
	if replay, done := attempt.Replay(); done {
		if x.answer, err = answer.Decode(replay); err != nil {
			// The handler has run, even if its record cannot be read.
			return nil, m.key.Own(&core.Error{Kind: core.ErrUnreplayable, Cause: err})
		}
		x.replayed = true
	}
	return x, nil
}

// covers reports whether a request is idempotent by its key. It is true for an empty or
// malformed key, which is refused when the key is read.
func (m *IdempotentHTTP[R]) covers(method string, r R) bool {
	if !slices.Contains(m.settings.methods, strings.ToUpper(method)) {
		return false
	}
	given := func(name string) bool { return len(m.request.Header(r, http.CanonicalHeaderKey(name))) > 0 }
	return len(m.settings.optionalKey) == 0 || slices.ContainsFunc(m.settings.optionalKey, given)
}

// fingerprint returns the digest that differs between requests with the same key. Its error
// names the option for it.
func (m *IdempotentHTTP[R]) fingerprint(r R) ([]byte, error) {
	if own := m.settings.fingerprint; own != nil {
		return keytext.ReadFor("WithFingerprint()", "", r, own)
	}
	limit := cmp.Or(m.settings.maxBody, bridge.DefaultMaxBody)
	limited := fmt.Sprintf("WithMaxBody(%d)", limit)
	body, err := keytext.ReadFor(limited, "the body", r, func(r R) ([]byte, error) { return m.request.Body(r, limit) })
	if err != nil {
		return nil, err
	}
	var request *http.Request
	if m.request.request != nil {
		request = m.request.request(r)
	}
	var contentType string
	if lines := m.request.Header(r, "Content-Type"); len(lines) > 0 {
		contentType = lines[0]
	}
	return fingerprintOf(m.request.Path(r), m.request.Query(r), contentType, body, request)
}

// An uncovered warns of requests that reach an IdempotentHTTP and run as without it, because of
// their method. It warns once for each method and pattern, so that its memory is bounded by
// the routes of the program. It is safe for concurrent use.
type uncovered struct {
	adapter Name
	locker  *core.Locker
	warned  sync.Map // the keys are of the type uncoveredRoute
}

// An uncoveredRoute is what uncovered warns of once.
type uncoveredRoute struct {
	by              *uncovered
	method, pattern string
}

// note warns of a request if a user may expect that it is covered: of PUT and DELETE, which
// change something, and may do so again for each copy.
func (u *uncovered) note(method, pattern string) {
	if method != http.MethodPut && method != http.MethodDelete {
		return
	}
	route := uncoveredRoute{u, method, pattern}
	if _, again := u.warned.LoadOrStore(route, nil); again {
		return
	}
	where := "a route without a pattern"
	if pattern != "" {
		where = fmt.Sprintf("the route %q", pattern)
	}
	covered := `"` + strings.Join(defaultMethods(), `", "`) + `"`
	Warn(u.locker, route, u.adapter.Errorf("Idempotent does not cover %[1]s on %[2]s: write core.WithMethods(%[3]s, %[1]q) to run "+
		"%[1]s once for its key, or core.WithMethods(%[3]s) if %[1]s runs without a key on purpose", method, where, covered))
}

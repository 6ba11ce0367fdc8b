package registration

import (
	"slices"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// Must panics with the message unless ok. It is for errors of a program at registration.
func Must(n adapter.Name, ok bool, message string) {
	if !ok {
		panic(n.Errorf("%s", message))
	}
}

// View returns l.With(opts...) for a middleware. The error is that of an option that is invalid, has
// no effect on the requests of the middleware, or belongs to another adapter.
func View(n adapter.Name, middleware string, kind bridge.Middleware, l *core.Locker, opts []core.Option) (*core.Locker, error) {
	view, err := bridge.View(l, string(n), middleware, kind, opts)
	if err != nil {
		return nil, err
	}
	return view.(*core.Locker), nil //nolint:forcetypeassert // see bridge
}

// LockView is View for a middleware that locks. The error is also that of a Locker or a key that
// does not fit.
func LockView[R any](
	n adapter.Name, middleware string, kind bridge.Middleware, l *core.Locker, key core.Key[R], opts []core.Option,
) (*core.Locker, error) {
	if err := check(n, middleware, l, key); err != nil {
		return nil, err
	}
	view, err := View(n, middleware, kind, l, opts)
	about := bridge.AboutOf(key)
	limitsBody := func(opt core.Option) bool { return bridge.NameOf(opt) == "WithMaxBody" }
	switch {
	case err != nil:
		return nil, err
	case about.NeedsWait && bridge.FactsOf(view).MaxWait == 0:
		return nil, n.Errorf("SharedWhen needs core.WithWait above 0: without it, reads can refuse a write for ever")
	case !about.ReadsBody && slices.ContainsFunc(opts, limitsBody):
		return nil, n.Errorf("core.WithMaxBody has no effect on %s, whose key does not read the body: leave it out", middleware)
	}
	return view, nil
}

// IdempotentView is View for a middleware of idempotent requests. The error is also that of a Locker
// or a key that does not fit.
func IdempotentView[R any](
	n adapter.Name, middleware string, kind bridge.Middleware, l *core.Locker, key core.Key[R], opts []core.Option,
) (*core.Locker, error) {
	if err := check(n, middleware, l, key); err != nil {
		return nil, err
	}
	switch about := bridge.AboutOf(key); {
	case about.Several:
		return nil, n.Errorf("%s has one key: to lock several keys of core.All, put a middleware that locks behind it", middleware)
	case about.HasLimit:
		return nil, n.Errorf("%s needs a key without Permits and Shared: a request has its key alone", middleware)
	}
	view, err := View(n, middleware, kind, l, opts)
	if err != nil {
		return nil, err
	}
	switch facts := bridge.FactsOf(view); {
	case facts.FailsOpen:
		return nil, n.Errorf("%s needs a locker without WithFailOpen: a request would take effect twice", middleware)
	case !facts.KeepsRecords:
		return nil, n.Errorf("%s needs a locker of core.New: a quorum keeps no records of requests", middleware)
	case facts.SharesLocks:
		return nil, n.Errorf("%s needs a locker without WithPermits and WithShared: a request has its key alone", middleware)
	}
	return view, nil
}

// check returns an error if the Locker of a middleware is nil, or its key the zero Key.
func check[R any](n adapter.Name, middleware string, l *core.Locker, key core.Key[R]) error {
	switch {
	case l == nil:
		return n.Errorf("%s needs a locker", middleware)
	case bridge.AboutOf(key) == nil:
		return n.Errorf("%s needs a key", middleware)
	}
	return nil
}

// Fingerprint returns the function of WithFingerprint that a Locker has, for requests of the type R.
// It is nil if there is none. The error is that of a function for requests of another type.
func Fingerprint[R any](n adapter.Name, l *core.Locker) (func(R) ([]byte, error), error) {
	s := bridge.SettingsOf(l)
	if s.NoFingerprint {
		return func(R) ([]byte, error) { return nil, nil }, nil
	}
	own, ok := s.Fingerprint.(func(R) ([]byte, error))
	if s.Fingerprint != nil && !ok {
		return nil, n.Errorf("WithFingerprint: a %T, and no %T", s.Fingerprint, own)
	}
	return own, nil
}

package adapter

import (
	"reflect"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// view returns l.With(opts...) for a middleware. The error is that of an option that is invalid, has
// no effect on the requests of the middleware, or belongs to another adapter.
func view(n Name, middleware string, kind bridge.Middleware, l *core.Locker, opts []core.Option) (*core.Locker, error) {
	view, err := bridge.View(l, string(n), middleware, kind, opts)
	if err != nil {
		return nil, err
	}
	return view.(*core.Locker), nil //nolint:forcetypeassert // see bridge
}

// idempotentView is view for a middleware of idempotent requests. The error is also that of a Locker
// or a key that does not fit.
func idempotentView[R any](
	n Name, middleware string, kind bridge.Middleware, l *core.Locker, key core.Key[R], opts []core.Option,
) (*core.Locker, error) {
	if err := check(n, middleware, l, key); err != nil {
		return nil, err
	}
	switch about := bridge.AboutOf(key); {
	case about.Several:
		return nil, n.Errorf("%s has one key: to lock several keys of core.All, put a middleware that locks behind it", middleware)
	case len(about.Limits) > 0:
		return nil, n.Errorf("%s needs a key without Permits and Shared: a request has its key alone", middleware)
	}
	l, err := view(n, middleware, kind, l, opts)
	if err != nil {
		return nil, err
	}
	switch facts := bridge.FactsOf(l); {
	case facts.FailsOpen:
		return nil, n.Errorf("%s needs a locker without WithFailOpen: a request would take effect twice", middleware)
	case !facts.KeepsRecords:
		return nil, n.Errorf("%s needs a locker of core.New: a quorum keeps no records of requests", middleware)
	case facts.SharesLocks:
		return nil, n.Errorf("%s needs a locker without WithPermits and WithShared: a request has its key alone", middleware)
	}
	return l, nil
}

// check returns an error if the Locker of a middleware is nil, or its key the zero Key.
func check[R any](n Name, middleware string, l *core.Locker, key core.Key[R]) error {
	switch {
	case l == nil:
		return n.Errorf("%s needs a locker, and got nil: look at the error of core.New", middleware)
	case bridge.AboutOf(key) == nil:
		return n.Errorf("%s needs a key", middleware)
	}
	return nil
}

// bind returns a key with the Locker of its middleware.
func bind[R any](l *core.Locker, key core.Key[R], idempotent bool) *bridge.Bound[R] {
	return bridge.Bind(l, key, idempotent).(*bridge.Bound[R]) //nolint:forcetypeassert // see bridge
}

// ownFingerprint returns the function of WithFingerprint that a Locker has, for requests of the type
// R. It is nil if there is none. The error is that of a function for requests of another type.
func ownFingerprint[R any](n Name, l *core.Locker) (func(R) ([]byte, error), error) {
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

// missingIn returns the name of the first exported field of a struct of functions that is nil, except the optional
// ones, or "".
func missingIn(functions any, optional ...string) string {
	all := reflect.ValueOf(functions)
	for i := range all.NumField() {
		field := all.Type().Field(i)
		if field.IsExported() && all.Field(i).IsNil() && !slices.Contains(optional, field.Name) {
			return field.Name
		}
	}
	return ""
}

package adapter

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A Name is the name of an adapter's package, for its errors: "echolock". Two adapters of one program
// need two names: by its name a middleware refuses a Setting of another adapter.
type Name string

// Errorf returns an error that begins with "reqlock: " and the name.
func (n Name) Errorf(format string, args ...any) error {
	return fmt.Errorf("reqlock: "+string(n)+": "+format, args...)
}

// Require panics with the message unless ok is true. It is for the mistakes of a program at
// registration.
func (n Name) Require(ok bool, message string) {
	if !ok {
		panic(n.Errorf("%s", message))
	}
}

// Must returns the value, and panics with the error if there is one. A middleware calls it for the
// mistakes of a program at registration.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// CheckOptions returns the error with which l.With panics for the options, or nil. If l is nil, it is
// the error of core.New. It is for an adapter that reads settings from somewhere else than Go code,
// and says where the mistake is.
func CheckOptions(l *core.Locker, opts ...core.Option) error { return bridge.CheckOptions(l, opts) }

// CheckName returns the error with which core.Key.Named refuses a name, or nil.
func CheckName(name string) error { return bridge.CheckName(name) }

// Warn sends an event of the kind core.Warned to the observers of a Locker, because a request shows
// a mistake in the setup of the adapter. It does so once for each subject. The subject is
// comparable, and tells this mistake from all others of all adapters: a value of a type of the
// adapter, such as one with the route. err says what is wrong and what to write instead, and
// contains no key. Warn is safe for concurrent use.
func Warn(l *core.Locker, subject any, err error) { bridge.Warn(l, subject, err) }

// NoteCaller returns the Locker with the code that has called the package of its caller, for
// core.WithCaller. NewLock and the like do so by themselves. It is for an adapter that is built on
// another one. l is not nil.
func NoteCaller(l *core.Locker) *core.Locker {
	return bridge.NoteCaller(l).(*core.Locker) //nolint:forcetypeassert // see bridge
}

// UnwrapContext lets core find the lease and the attempt of a request in a framework's own context,
// such as a *gin.Context, which has the values of its request only by an option of the engine.
// unwrap returns the context of the request, and false for another context. It is called for
// contexts that carry no lease, and must be safe for concurrent use.
//
// An adapter calls UnwrapContext in an init function, and nowhere else: it is not safe for
// concurrent use.
func UnwrapContext(unwrap func(ctx context.Context) (request context.Context, ok bool)) {
	bridge.UnwrapContext(unwrap)
}

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

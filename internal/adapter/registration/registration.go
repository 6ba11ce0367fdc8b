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

// KeyOf makes a KeyFunc from the key function of a middleware. It panics if the Locker or the
// key function is nil.
func KeyOf[R any, K string | core.RequestKey](n adapter.Name, middleware string, l *core.Locker, key func(R) (K, error)) core.KeyFunc[R] {
	Must(n, l != nil, middleware+" needs a locker")
	Must(n, key != nil, middleware+" needs a key function")
	return core.Func(key)
}

// Also returns the option Also of an adapter, which adds key functions. It panics if there is none,
// or if one is nil.
func Also[R any, F ~func(R) (K, error), K string | core.RequestKey](n adapter.Name, keys []F) core.Option {
	Must(n, len(keys) > 0, "Also needs a key function")
	more := make([]core.KeyFunc[R], len(keys))
	for i, key := range keys {
		Must(n, key != nil, "Also got a nil key function")
		more[i] = core.Func((func(R) (K, error))(key))
	}
	return bridge.NewOption(also(n), bridge.Locks, func(old any) any {
		before, _ := old.([]core.KeyFunc[R])
		return slices.Concat(before, more)
	}).(core.Option)
}

// AlsoOf returns the key functions of Also that a Locker has.
func AlsoOf[R any](n adapter.Name, l *core.Locker) []core.KeyFunc[R] {
	keys, _ := bridge.SettingsOf(l).Own[also(n)].([]core.KeyFunc[R])
	return keys
}

func also(n adapter.Name) bridge.OwnOption {
	return bridge.OwnOption{Adapter: string(n), Option: "Also"}
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

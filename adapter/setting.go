package adapter

import (
	"reflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A Scope says which middlewares of an adapter accept an option.
type Scope int

// The scopes.
const (
	ForAll        Scope = iota
	ForLocks            // only a middleware that locks
	ForIdempotent       // only a middleware of idempotent requests
)

// middlewares returns the middlewares of a scope.
func (s Scope) middlewares() bridge.Middleware {
	return [...]bridge.Middleware{ForAll: bridge.All, ForLocks: bridge.Locks, ForIdempotent: bridge.Idempotents}[s]
}

// A Setting is an option of an adapter, for what needs the types of its framework, such as an
// error handler. All other options are core's. A middleware of another adapter refuses it.
type Setting[T any] struct {
	own   bridge.OwnOption
	scope Scope
}

// NewSetting returns the setting behind an option. option is the function of the adapter that
// makes the option. A Setting with the name WithUnknown is one setting with
// core.WithFreeOnFailure: of the two options, the later one counts.
func NewSetting[T any](n Name, option string, scope Scope) Setting[T] {
	return Setting[T]{bridge.OwnOption{Adapter: string(n), Option: option}, scope}
}

// Option returns the option that sets the value. A nil function panics.
func (s Setting[T]) Option(value T) core.Option {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Func && v.IsNil() {
		panic(Name(s.own.Adapter).Errorf("%s needs a function", s.own.Option))
	}
	return bridge.NewOption(s.own, s.scope.middlewares(), func(any) any { return value }).(core.Option)
}

// Value returns the value that a Locker has, and false if it is not set.
func (s Setting[T]) Value(l *core.Locker) (value T, isSet bool) {
	value, isSet = bridge.SettingsOf(l).Own[s.own].(T)
	return value, isSet
}

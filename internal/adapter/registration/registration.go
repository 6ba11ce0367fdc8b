package registration

import (
	"fmt"

	"github.com/reqlock/reqlock/core"
)

// An Adapter is the name of an adapter's package, for the messages of panics.
type Adapter string

// Must panics with the message unless ok. It is for errors of a program at registration.
func (a Adapter) Must(ok bool, message string) {
	if !ok {
		panic(a.says(message))
	}
}

func (a Adapter) says(message string) string { return "reqlock: " + string(a) + ": " + message }

// KeysOf makes a KeyFunc from each key function of the named option. It panics if there is
// none, or if one is nil.
func KeysOf[R any, F ~func(R) (K, error), K string | core.RequestKey](a Adapter, option string, keys []F) []core.KeyFunc[R] {
	a.Must(len(keys) > 0, option+" needs a key function")
	funcs := make([]core.KeyFunc[R], len(keys))
	for i, key := range keys {
		a.Must(key != nil, option+" got a nil key function")
		funcs[i] = core.Func((func(R) (K, error))(key))
	}
	return funcs
}

// KeyOf makes a KeyFunc from the key function of a middleware. It panics if the Locker or the
// key function is nil.
func KeyOf[R any, K string | core.RequestKey](a Adapter, middleware string, l *core.Locker, key func(R) (K, error)) core.KeyFunc[R] {
	a.Must(l != nil, middleware+" needs a locker")
	a.Must(key != nil, middleware+" needs a key function")
	return core.Func(key)
}

// A Setting is an adapter's own option. It changes a configuration.
type Setting[Config any] struct {
	name string // with its package, as in "nethttplock.Also"
	set  func(*Config)
}

// NewSetting returns the adapter's option of that name.
func NewSetting[Config any](a Adapter, name string, set func(*Config)) Setting[Config] {
	return Setting[Config]{name: string(a) + "." + name, set: set}
}

// ReqlockOption marks a Setting as an option of the adapter.
func (Setting[Config]) ReqlockOption() {}

// nameOf returns the name of the option. It is a method for a Setting of any adapter.
func (s Setting[Config]) nameOf() string { return s.name }

// Apply applies the adapter's own options to config, in order, and returns the options of
// core. A nil option, and an option of another adapter, panic.
func Apply[Config any, Option interface{ ReqlockOption() }](a Adapter, config *Config, opts []Option) []core.Option {
	var rest []core.Option
	for _, opt := range opts {
		switch opt := any(opt).(type) {
		case Setting[Config]:
			opt.set(config)
		case core.Option:
			rest = append(rest, opt)
		case nil:
			panic(a.says("an option is nil"))
		case interface{ nameOf() string }:
			panic(a.says(opt.nameOf() + " is an option of another adapter: write options of " + string(a) + " and core"))
		default:
			panic(a.says(fmt.Sprintf("%T is an option of another adapter: write options of %s and core", opt, a)))
		}
	}
	return rest
}

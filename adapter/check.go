package adapter

import (
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

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

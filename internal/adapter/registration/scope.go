package registration

import (
	"fmt"

	"github.com/reqlock/reqlock/core"
)

// ForLocks returns the options of core for a middleware that only locks. It panics if one of
// them has an effect on idempotent requests only.
func (a Adapter) ForLocks(middleware string, opts []core.Option) []core.Option {
	return a.mustFit(middleware, false, opts)
}

// ForAttempts returns the options of core for a middleware of idempotent requests. It panics if
// one of them has an effect on plain locks only.
func (a Adapter) ForAttempts(middleware string, opts []core.Option) []core.Option {
	return a.mustFit(middleware, true, opts)
}

func (a Adapter) mustFit(middleware string, attempts bool, opts []core.Option) []core.Option {
	if err := a.CheckScope(middleware, attempts, opts); err != nil {
		panic(err)
	}
	return opts
}

// CheckScope returns an error if one of the options has no effect on the requests of the
// middleware. attempts says whether these are idempotent.
func (a Adapter) CheckScope(middleware string, attempts bool, opts []core.Option) error {
	for _, opt := range opts {
		scoped, ok := opt.(interface {
			ReqlockScope() (name string, attempts bool)
		})
		if !ok {
			continue
		}
		if name, only := scoped.ReqlockScope(); only != attempts {
			return fmt.Errorf("reqlock: %s: %s has no effect on %s: leave it out", a, name, middleware)
		}
	}
	return nil
}

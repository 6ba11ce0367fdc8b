package core

import "fmt"

// WithName sets the name of locks in events, such as "payments": that of Named, or the route of an
// idempotent request, if not set. See Event.Name. It wins over Named, and applies to all keys of a
// request. It is never part of a key: unlike Named, it can be added and changed at any time, and a
// stored request stays a stored one.
//
// A name consists of letters, digits, "-", "_", "." and "/", and does not begin with a digit. A
// program should have few names, because metrics have a series for each of them.
func WithName(name string) Option {
	return option(func(s *settings) error {
		if !isName(name) {
			return fmt.Errorf("reqlock: WithName: %q is no name: use letters, digits, '-', '_', '.' and '/', and do not begin with a digit", name)
		}
		s.name = name
		return nil
	})
}

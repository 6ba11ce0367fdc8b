package adapter

import "slices"

// below returns the error that err wraps, or nil, and whether err wraps several ones.
func below(err error) (wrapped error, joined bool) {
	switch err := err.(type) { //nolint:errorlint // the chain is walked here
	case interface{ Unwrap() error }:
		return err.Unwrap(), false
	case interface{ Unwrap() []error }:
		all := err.Unwrap()
		if len(all) != 1 {
			return nil, true
		}
		return all[0], false
	}
	return nil, false
}

// walk calls visit for an error and those that it wraps, in the order of errors.As, until visit
// returns true. It reports whether visit has done so.
func walk(err error, visit func(error) bool) bool {
	if err == nil {
		return false
	}
	if visit(err) {
		return true
	}
	switch err := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return walk(err.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), func(one error) bool { return walk(one, visit) })
	}
	return false
}

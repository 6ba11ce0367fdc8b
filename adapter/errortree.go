package adapter

import (
	"reflect"
	"slices"
)

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

// endsIn reports whether err is target, or wraps it and no other error beside it.
func endsIn(err, target error) bool {
	for err != nil {
		if same(err, target) {
			return true
		}
		wrapper, wraps := err.(interface{ Unwrap() error })
		if !wraps {
			return false
		}
		err = wrapper.Unwrap()
	}
	return false
}

// same reports whether two errors are one. Of errors that cannot be compared it compares the
// types.
func same(a, b error) bool {
	if b != nil && !reflect.ValueOf(b).Comparable() { // == would panic
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b //nolint:errorlint // the same error, not a wrapped one
}

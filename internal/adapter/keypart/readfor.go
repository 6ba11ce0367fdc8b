package keypart

import "github.com/reqlock/reqlock/core"

// ReadFor reads a value from a request for an option, such as a fingerprint. Its error is that
// of a key function, with the option as its call: see core.Describe and core.KeyError.
func ReadFor[R, V any](option, part string, request R, read func(R) (V, error)) (got V, err error) {
	_, err = core.Describe(option, part, func(r R) (string, error) {
		var failed error
		got, failed = read(r)
		return "read", failed
	})(request)
	return got, core.KeyError(err)
}

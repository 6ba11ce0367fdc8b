package keytext

import "github.com/reqlock/reqlock/internal/bridge"

// ReadFor reads a value from a request for an option, such as a fingerprint. Its error is that
// of a key, with the option as its call: see core.Key.Describe.
func ReadFor[R, V any](option, part string, request R, read func(R) (V, error)) (V, error) {
	got, err := read(request)
	if err != nil {
		err = bridge.DescribeError(err, option, part)
	}
	return got, err
}

package adapter

import "fmt"

// A Name is the name of an adapter's package, for its errors: "echolock". Two adapters of one program
// need two names: by its name a middleware refuses a Setting of another adapter.
type Name string

// Errorf returns an error that begins with "reqlock: " and the name.
func (n Name) Errorf(format string, args ...any) error {
	return fmt.Errorf("reqlock: "+string(n)+": "+format, args...)
}

// Require panics with the message unless ok is true. It is for the mistakes of a program at
// registration.
func (n Name) Require(ok bool, message string) {
	if !ok {
		panic(n.Errorf("%s", message))
	}
}

// Must returns the value, and panics with the error if there is one. A middleware calls it for the
// mistakes of a program at registration.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

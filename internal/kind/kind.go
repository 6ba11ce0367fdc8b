// Package kind has the errors of core that packages below it return, too.
package kind

import "errors"

// The errors are those of package core with the same names, and described there.
var (
	ErrNoKey        = errors.New("reqlock: no key")
	ErrInvalidKey   = errors.New("reqlock: invalid key")
	ErrBodyTooLarge = errors.New("reqlock: body too large")
)

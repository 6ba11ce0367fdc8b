package keypart

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/reqlock/reqlock/core"
)

// MaxLen is the longest text, in bytes, that is taken from a request as a key.
const MaxLen = 512

// Text checks a text that was read from a request, and returns it as a key.
//
// An empty text is core.ErrNoKey. One over MaxLen bytes, or with a control
// character (C0, DEL or C1), is core.ErrInvalidKey. Bytes that are not UTF-8
// pass: Redis and Go's strings carry them as they are.
func Text(s string) (string, error) {
	switch {
	case s == "":
		return "", core.ErrNoKey
	case len(s) > MaxLen:
		return "", Invalid("over %d bytes", MaxLen)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "", Invalid("a control character")
	}
	return s, nil
}

// Only returns the one text of several, as Text does. None is core.ErrNoKey.
// More than one is core.ErrInvalidKey even if all are equal: the handler might
// read another one than the lock.
func Only(texts []string) (string, error) {
	switch len(texts) {
	case 0:
		return "", core.ErrNoKey
	case 1:
		return Text(texts[0])
	default:
		return "", Invalid("given %d times", len(texts))
	}
}

// Invalid returns a core.ErrInvalidKey that says what is wrong. What it says
// must not come from the request.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{core.ErrInvalidKey}, args...)...)
}

package keytext

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/reqlock/reqlock/internal/kind"
)

// MaxLen is the maximum length, in bytes, of a key that is read from a request.
const MaxLen = 512

// Text checks a text that was read from a request, and returns it as a key.
//
// An empty text is kind.ErrNoKey. A text over MaxLen bytes, or with a control character
// (C0, DEL or C1), is kind.ErrInvalidKey. Bytes that are not UTF-8 are valid: Redis and
// Go's strings keep them unchanged.
func Text(s string) (string, error) {
	switch {
	case s == "":
		return "", kind.ErrNoKey
	case len(s) > MaxLen:
		return "", Invalid("over %d bytes", MaxLen)
	case strings.ContainsFunc(s, unicode.IsControl):
		return "", Invalid("a control character")
	}
	return s, nil
}

// Only returns the single text of a list, as Text does. An empty list is kind.ErrNoKey.
// More than one text is kind.ErrInvalidKey even if all are equal: the handler might read
// another one than the lock.
func Only(texts []string) (string, error) {
	switch len(texts) {
	case 0:
		return "", kind.ErrNoKey
	case 1:
		return Text(texts[0])
	default:
		return "", Invalid("given %d times", len(texts))
	}
}

// Invalid returns a kind.ErrInvalidKey with the reason. The reason must not contain
// anything from the request.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{kind.ErrInvalidKey}, args...)...)
}

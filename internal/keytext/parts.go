package keytext

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/internal/kind"
)

// OfParts returns the key that the Key of a middleware reads from a request with these
// values: the value itself, or the key of core.Join if there are several. A value in double
// quotes is an Idempotency-Key in the quoted form, and counts without its quotes.
func OfParts(parts []string) (string, error) {
	if len(parts) == 0 {
		return "", errors.New("no part of the key is given")
	}
	var joined strings.Builder
	for i, part := range parts {
		key, err := partKey(part)
		if err == nil && key == "" {
			err = kind.ErrNoKey
		}
		if err != nil {
			return "", &partError{i + 1, err}
		}
		if len(parts) == 1 {
			return key, nil
		}
		joined.WriteString(strconv.Itoa(len(key)))
		joined.WriteByte(':')
		joined.WriteString(key)
	}
	return joined.String(), nil
}

// partKey returns the part of a key that the value makes.
func partKey(value string) (string, error) {
	if strings.HasPrefix(value, `"`) {
		return IdempotencyKey([]string{value})
	}
	return value, nil
}

// A partError is the error of one part. Its text follows that of the function that was called.
type partError struct {
	number int
	err    error
}

// Error says which part is wrong, and why.
func (e *partError) Error() string {
	if errors.Is(e.err, kind.ErrNoKey) {
		return fmt.Sprintf("part %d of the key is empty", e.number)
	}
	return fmt.Sprintf("part %d of the key: %s", e.number, strings.TrimPrefix(e.err.Error(), kind.ErrInvalidKey.Error()+": "))
}

// Unwrap returns kind.ErrNoKey or kind.ErrInvalidKey.
func (e *partError) Unwrap() error { return e.err }

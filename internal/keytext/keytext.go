// Package keytext makes lock keys of the parts of a request: texts from headers, paths,
// queries and bodies, and values that other middlewares have stored.
//
// All adapters use it, so that the same input is the same key, or is refused, on every
// framework. Its errors are core's ErrNoKey and ErrInvalidKey. They never quote the input.
package keytext

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/reqlock/reqlock/internal/bridge"
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

// QueryValues returns the values of a parameter of a query. A malformed query is
// kind.ErrInvalidKey: url.URL.Query would silently drop its malformed parts.
func QueryValues(query, name string) ([]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, Invalid("a malformed query")
	}
	return values[name], nil
}

// Call returns how a program writes a key, for its errors: PathValue("id"). Of an argument that is
// not a text it shows the type.
func Call(function string, argument any) string {
	if name, ok := argument.(string); ok {
		return function + "(" + strconv.Quote(name) + ")"
	}
	return fmt.Sprintf("%s(%T)", function, argument)
}

// ReadFor reads a value from a request for an option, such as a fingerprint. Its error is that
// of a key, with the option as its call: see core.Key.Describe.
func ReadFor[R, V any](option, part string, request R, read func(R) (V, error)) (V, error) {
	got, err := read(request)
	if err != nil {
		err = bridge.DescribeError(err, option, part)
	}
	return got, err
}

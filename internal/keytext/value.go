package keytext

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/reqlock/reqlock/internal/kind"
)

// Value returns the key of a value that a middleware has stored for the handler: a string,
// a fmt.Stringer, or an integer, named types included. The String method of a type has
// precedence over its kind.
//
// No value, a nil pointer or an empty text is kind.ErrUnset, which is a kind.ErrNoKey. A value of
// another type is a kind.ErrInvalidKey that names the type. Text checks the resulting text.
func Value(v any) (string, error) {
	if isNil(v) {
		return "", kind.ErrUnset
	}
	switch v := v.(type) {
	case string:
		return stored(v)
	case fmt.Stringer:
		return stored(v.String())
	}
	switch rv := reflect.ValueOf(v); rv.Kind() { //nolint:exhaustive // the others are no keys
	case reflect.String:
		return stored(rv.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(rv.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.FormatUint(rv.Uint(), 10), nil
	default:
		return "", wrongType(fmt.Sprintf("a value of type %T is no key", v), "set a string or an integer, or read the value with GetAs or ContextValueAs")
	}
}

// As returns the key of a value of type T, by the function get. No value, or a nil pointer,
// is kind.ErrUnset, without a call of get, and so is an empty result. A value of another type is a
// kind.ErrInvalidKey that names the type. Text checks the result of get.
func As[T any](v any, get func(T) string) (string, error) {
	if isNil(v) {
		return "", kind.ErrUnset
	}
	t, ok := v.(T)
	if !ok {
		return "", wrongType(fmt.Sprintf("the value is a %T, and the key reads a %v", v, reflect.TypeFor[T]()), "use the type that the middleware sets")
	}
	return stored(get(t))
}

// stored is Text for a text that the program has stored.
func stored(s string) (string, error) {
	if s == "" {
		return "", kind.ErrUnset
	}
	return Text(s)
}

// wrongType returns the kind.ErrInvalidKey of a value that has a type without a key.
func wrongType(cause, fix string) error {
	return kind.Mistake{Kind: kind.ErrInvalidKey, Cause: cause, Fix: fix}
}

// isNil reports whether v is nil, or a nil pointer, slice, map, func or channel: a method
// of such a value may panic.
func isNil(v any) bool {
	switch rv := reflect.ValueOf(v); rv.Kind() { //nolint:exhaustive // the others are never nil
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return rv.IsNil()
	default:
		return false
	}
}

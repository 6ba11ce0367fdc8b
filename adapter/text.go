package adapter

import "github.com/reqlock/reqlock/internal/keytext"

// Each of these functions returns the text of a key, or core.ErrNoKey or core.ErrInvalidKey without
// anything of the input.

// Text checks a text of a request, and returns it. An empty one is core.ErrNoKey. One over 512 bytes,
// or with a control character, is core.ErrInvalidKey.
func Text(s string) (string, error) { return keytext.Text(s) }

// Only is Text for the only one of several values. More than one is core.ErrInvalidKey even if all
// are equal: the handler might read another one than the lock.
func Only(values []string) (string, error) { return keytext.Only(values) }

// IdempotencyKey returns the key in the lines of an Idempotency-Key field, quoted or bare:
// draft-ietf-httpapi-idempotency-key-header-07, an expired draft, and nethttplock.IdempotencyKey.
func IdempotencyKey(lines []string) (string, error) { return keytext.IdempotencyKey(lines) }

// QueryValue is Only for a parameter of a query, "a=1&b=2". A malformed query is core.ErrInvalidKey.
func QueryValue(query, name string) (string, error) {
	values, err := keytext.QueryValues(query, name)
	if err != nil {
		return "", err
	}
	return keytext.Only(values)
}

// Host returns the one form of the host of a request: in lower case, without a port and without a dot
// at its end.
func Host(host string) (string, error) { return keytext.Host(host) }

// IP returns the one form of an IP address without a port.
func IP(address string) (string, error) { return keytext.IP(address) }

// Value is Text for a value that a middleware has stored: a string, an integer, or a value with a
// method String. nil and an empty text are core.ErrNoKey. Another type is core.ErrInvalidKey, which
// names the type. No client can mend these, so a Lock and an Idempotent send one core.Warned event.
func Value(v any) (string, error) { return keytext.Value(v) }

// ValueAs is Value for a value of the type T, which get reads.
func ValueAs[T any](v any, get func(T) string) (string, error) { return keytext.As(v, get) }

// Call returns how a program calls a function of an adapter, for core.Key.Describe: Header("X-User").
// Of an argument that is not a string it shows the type.
func Call(function string, argument any) string { return keytext.Call(function, argument) }

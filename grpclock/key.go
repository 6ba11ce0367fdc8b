package grpclock

import (
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Metadata reads the key from the metadata of a call. Upper and lower case are
// the same in a name. What comes more than once is core.ErrInvalidKey, since
// the handler might read another one than the lock. An empty name panics, and
// so does one that ends in "-bin", whose values are bytes and no keys.
//
// A client can send whatever it likes: see the package comment on keys.
func Metadata(name string) KeyFunc {
	adapter.Must(name != "", "Metadata needs a name")
	adapter.Must(!strings.HasSuffix(strings.ToLower(name), "-bin"), "Metadata: "+name+" holds bytes, which are no key")
	name = strings.ToLower(name)
	return func(c *Call) (string, error) {
		return keypart.Only(metadata.ValueFromIncomingContext(c.Context(), name))
	}
}

// IdempotencyKey reads the key from the metadata "idempotency-key", by which a
// client marks the copies of one call. The client chooses it, so join it with
// who the client is:
//
//	core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())
//
// By itself it is one key for all users: what one of them chooses holds up
// another one who chooses the same.
//
// It is written as in the HTTP header that gateways pass on
// (draft-ietf-httpapi-idempotency-key-header-07): quoted or bare, which are the
// same key. Bare, it consists of visible ASCII but for quotes, commas,
// semicolons and backslashes; quoted, of printable ASCII. No key or an empty
// one is core.ErrNoKey. Metadata that comes more than once, a list, and whatever
// else is malformed are core.ErrInvalidKey.
//
// Under a UnaryServerInterceptor it keeps copies of a call from running at the
// same time, and one that comes after the first has ended runs again. Under an
// IdempotentUnaryServerInterceptor that one gets the first one's answer.
func IdempotencyKey() KeyFunc {
	return func(c *Call) (string, error) {
		return keypart.IdempotencyKey(metadata.ValueFromIncomingContext(c.Context(), "idempotency-key"))
	}
}

// ContextValue reads the key from a value in the context of a call, such as the
// user that an authentication interceptor put there. Strings, integers and
// values with a method String are keys; the key of another type is
// core.ErrInvalidKey, and the error names the type. A missing or nil value is
// core.ErrNoKey. A nil key panics.
func ContextValue(key any) KeyFunc {
	adapter.Must(key != nil, "ContextValue needs a key")
	return func(c *Call) (string, error) { return keypart.Value(c.Context().Value(key)) }
}

// ContextValueAs reads the key from a value of type T in the context of a call
// by the function get:
//
//	grpclock.ContextValueAs(userKey{}, func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey; one of another type is
// core.ErrInvalidKey, and the error names the type. A nil key or get panics.
func ContextValueAs[T any](key any, get func(T) string) KeyFunc {
	adapter.Must(key != nil, "ContextValueAs needs a key")
	adapter.Must(get != nil, "ContextValueAs needs a function")
	return func(c *Call) (string, error) { return keypart.As(c.Context().Value(key), get) }
}

// Method is the full method of a call, "/pkg.Service/Method": one lock for each
// method, or a part for core.Join.
func Method() KeyFunc {
	return func(c *Call) (string, error) { return keypart.Text(c.FullMethod()) }
}

// Literal is the same key for every call: one lock for all of them, or a part
// for core.Join. An empty one panics.
func Literal(key string) KeyFunc {
	adapter.Must(key != "", "Literal needs a key")
	return func(*Call) (string, error) { return key, nil }
}

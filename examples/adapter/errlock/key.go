package errlock

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A Key reads the lock key from a request. Its functions are those of nethttplock, which describes them.
type Key = core.Key[*http.Request]

// Header reads the key from a request header.
func Header(name string) Key { return nethttplock.Header(name) }

// IdempotencyKey reads the key from the Idempotency-Key header.
func IdempotencyKey() Key { return nethttplock.IdempotencyKey() }

// PathValue reads the key from a wildcard of the route.
func PathValue(name string) Key { return nethttplock.PathValue(name) }

// Query reads the key from a parameter of the query.
func Query(name string) Key { return nethttplock.Query(name) }

// Cookie reads the key from a cookie.
func Cookie(name string) Key { return nethttplock.Cookie(name) }

// Form reads the key from a field of a form in the body.
func Form(name string) Key { return nethttplock.Form(name) }

// JSONField reads the key from a field of a JSON object in the body.
func JSONField(path string) Key { return nethttplock.JSONField(path) }

// RemoteIP reads the key from the address of the peer.
func RemoteIP() Key { return nethttplock.RemoteIP() }

// Host reads the key from the host to which the request was sent.
func Host() Key { return nethttplock.Host() }

// BasicUser reads the key from the user name of the Authorization header.
func BasicUser() Key { return nethttplock.BasicUser() }

// ContextValue reads the key from a value in the context of the request.
func ContextValue(key any) Key { return nethttplock.ContextValue(key) }

// ContextValueAs reads the key from a value of type T in the context of the request.
func ContextValueAs[T any](key any, get func(T) string) Key {
	return nethttplock.ContextValueAs(key, get)
}

// Literal is the same key for every request.
func Literal(key string) Key { return nethttplock.Literal(key) }

// IsRead reports whether the method of a request is GET or HEAD, for Key.SharedWhen.
func IsRead(r *http.Request) bool { return nethttplock.IsRead(r) }

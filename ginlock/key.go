package ginlock

import (
	"net/url"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Param reads the key from a parameter of the route, as in
// "/accounts/:id/transfer". Where no route was found there is none, which is
// core.ErrNoKey: see the package comment on unknown routes. An empty name
// panics.
//
// The key is what c.Param gives the handler. In an engine that leaves values
// escaped (UseEscapedPath or UseRawPath without UnescapePathValues) "42" and
// "4%32" are two keys: a handler that unescapes them needs a key function that
// does so too.
func Param(name string) KeyFunc {
	adapter.Must(name != "", "Param needs a name")
	return func(c *gin.Context) (string, error) { return keypart.Text(c.Param(name)) }
}

// Header reads the key from a request header. A header that comes more than
// once is core.ErrInvalidKey, since the handler might read another one than
// the lock. An empty name panics.
//
// A client can send whatever it likes: see the package comment on keys.
func Header(name string) KeyFunc { return ofRequest(httpkey.Header(name)) }

// IdempotencyKey reads the key from the Idempotency-Key header, by which a
// client marks the copies of one request (draft-ietf-httpapi-idempotency-key-header-07).
// The client chooses it, so join it with who the client is:
//
//	core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())
//
// By itself it is one key for all users: what one of them chooses holds up
// another one who chooses the same.
//
// The key may be quoted, as the draft has it, or bare, as most clients send it;
// both are the same key. Bare, it consists of visible ASCII but for quotes,
// commas, semicolons and backslashes; quoted, of printable ASCII. No key or an
// empty one is core.ErrNoKey. A header that comes more than once, a list, and
// whatever else is malformed are core.ErrInvalidKey.
//
// Under Idempotent a copy of a request gets the answer of the first one. Under
// Middleware copies do not run at the same time, but one that comes after the first
// has ended runs again.
func IdempotencyKey() KeyFunc { return ofRequest(httpkey.IdempotencyKey()) }

// Query reads the key from a parameter of the URL's query. A parameter that
// comes more than once, or a malformed query, is core.ErrInvalidKey. An empty
// name panics.
func Query(name string) KeyFunc { return ofRequest(httpkey.Query(name)) }

// Cookie reads the key from a cookie, unescaped as by c.Cookie. Two cookies of
// the name, or one that cannot be unescaped, are core.ErrInvalidKey. An empty
// name panics.
func Cookie(name string) KeyFunc {
	cookie := httpkey.Cookie(name)
	return func(c *gin.Context) (string, error) {
		escaped, err := cookie(c.Request)
		if err != nil {
			return "", err
		}
		value, err := url.QueryUnescape(escaped)
		if err != nil {
			return "", keypart.Invalid("a malformed cookie")
		}
		return keypart.Text(value)
	}
}

// ClientIP reads the key from c.ClientIP: the address of the client, as far as
// the engine believes what its proxies say of it. One address has one key,
// however it is written. A client without one, as on a Unix socket, is
// core.ErrNoKey or core.ErrInvalidKey.
//
// Gin believes X-Forwarded-For of anybody if it is not told otherwise, so that
// a client can choose its key. Tell it with engine.SetTrustedProxies: the
// addresses of your proxies, or nil for none.
func ClientIP() KeyFunc {
	return func(c *gin.Context) (string, error) { return keypart.IP(c.ClientIP()) }
}

// Host reads the key from c.Request.Host, the host to which the request was
// sent. It is for services whose tenants have hosts of their own. Alone it is one key
// for all requests of a tenant, so join it with other parts:
//
//	core.Join(ginlock.Host(), ginlock.Get("user_id"), ginlock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant
// has one key on all ports. An IPv6 address has one key, however it is written. No
// host is core.ErrNoKey. A host with characters other than letters, digits,
// hyphens, underscores and dots is core.ErrInvalidKey: international names have
// their ASCII form (xn--) in requests.
//
// A client can send any host. Choose the tenant of the handler by the same host, and
// refuse hosts that no tenant has. Host does not read X-Forwarded-Host, which a
// client can forge. Behind a proxy that changes the host, set c.Request.Host in a
// middleware before the lock.
func Host() KeyFunc { return ofRequest(httpkey.Host()) }

// Get reads the key from a value that an earlier handler put into c with
// c.Set, such as the user that an authentication middleware found. Strings,
// integers and values with a method String are keys; a value of another type
// is core.ErrInvalidKey, and the error names the type. A missing or nil value
// is core.ErrNoKey.
//
// The name is a string, or whatever else c.Set was called with. One that is
// nil, empty or not comparable panics.
func Get(name any) KeyFunc {
	mustBeName(name, "Get")
	return func(c *gin.Context) (string, error) {
		value, _ := c.Get(name)
		return keypart.Value(value)
	}
}

// GetAs reads the key from a value of type T, that an earlier handler put into
// c with c.Set, by the function get:
//
//	ginlock.GetAs("user", func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey; one of another type is
// core.ErrInvalidKey, and the error names the type. A nil get panics, and so
// does a name as for Get.
func GetAs[T any](name any, get func(T) string) KeyFunc {
	mustBeName(name, "GetAs")
	adapter.Must(get != nil, "GetAs needs a function")
	return func(c *gin.Context) (string, error) {
		value, _ := c.Get(name)
		return keypart.As(value, get)
	}
}

// Literal is the same key for every request: one lock for all of them, or a
// part for core.Join. An empty one panics.
func Literal(key string) KeyFunc { return ofRequest(httpkey.Literal(key)) }

// ofRequest reads a key from the request behind the context.
func ofRequest(key httpkey.KeyFunc) KeyFunc {
	return func(c *gin.Context) (string, error) { return key(c.Request) }
}

// mustBeName panics if a name cannot be one of c.Set's.
func mustBeName(name any, function string) {
	adapter.Must(name != nil && name != "", function+" needs a name")
	adapter.Must(reflect.TypeOf(name).Comparable(), function+" needs a name that is comparable")
}

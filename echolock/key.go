package echolock

import (
	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// Param reads the key from a parameter of the route's path, as in
// "/accounts/:id/transfer". Where the route has none of that name, or no route
// is known yet, as under e.Pre, it is core.ErrNoKey: see the package comment on
// unknown routes. An empty name panics.
//
// The key is what c.Param gives the handler. Echo hands on the escapes of some
// paths as they were sent, so that "42" and "4%32" are two accounts to a handler
// and two keys: a handler that unescapes them needs a key function that does so
// too.
func Param(name string) KeyFunc {
	adapter.Must(name != "", "Param needs a name")
	return func(c echo.Context) (string, error) { return keypart.Text(c.Param(name)) }
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
//	core.Join(echolock.Get("user_id"), echolock.IdempotencyKey())
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

// QueryParam reads the key from a parameter of the URL's query. A parameter
// that comes more than once, or a malformed query, is core.ErrInvalidKey. An
// empty name panics.
func QueryParam(name string) KeyFunc { return ofRequest(httpkey.Query(name)) }

// Cookie reads the key from a cookie. Two cookies of the name are
// core.ErrInvalidKey. An empty name panics.
func Cookie(name string) KeyFunc { return ofRequest(httpkey.Cookie(name)) }

// RealIP reads the key from c.RealIP: the address of the client, as far as
// Echo believes what the request says of it. One address has one key, however
// it is written. A client without one, as on a Unix socket, is core.ErrNoKey;
// what is no address is core.ErrInvalidKey.
//
// Echo believes X-Forwarded-For and X-Real-IP of anybody if it is not told
// otherwise, so that a client can choose its key. Tell it with e.IPExtractor:
// echo.ExtractIPDirect() without a proxy, or echo.ExtractIPFromXFFHeader and
// echo.ExtractIPFromRealIPHeader with the addresses of your proxies.
func RealIP() KeyFunc {
	return func(c echo.Context) (string, error) { return keypart.IP(c.RealIP()) }
}

// Host reads the key from c.Request().Host, the host to which the request was
// sent. It is for services whose tenants have hosts of their own. Alone it is one key
// for all requests of a tenant, so join it with other parts:
//
//	core.Join(echolock.Host(), echolock.Get("user_id"), echolock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant
// has one key on all ports. An IPv6 address has one key, however it is written. No
// host is core.ErrNoKey. A host with characters other than letters, digits,
// hyphens, underscores and dots is core.ErrInvalidKey: international names have
// their ASCII form (xn--) in requests.
//
// A client can send any host. Choose the tenant of the handler by the same host, and
// refuse hosts that no tenant has. Host does not read X-Forwarded-Host, which a
// client can forge. Behind a proxy that changes the host, set c.Request().Host in a
// middleware before the lock.
func Host() KeyFunc { return ofRequest(httpkey.Host()) }

// Get reads the key from a value that an earlier middleware put into c with
// c.Set, such as the user that an authentication found. Strings, integers and
// values with a method String are keys; a value of another type is
// core.ErrInvalidKey, and the error names the type. A missing or nil value is
// core.ErrNoKey. An empty name panics.
func Get(name string) KeyFunc {
	adapter.Must(name != "", "Get needs a name")
	return func(c echo.Context) (string, error) { return keypart.Value(c.Get(name)) }
}

// GetAs reads the key from a value of type T, that an earlier middleware put
// into c with c.Set, by the function get:
//
//	echolock.GetAs("user", func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey; one of another type is
// core.ErrInvalidKey, and the error names the type. An empty name or a nil get
// panics.
func GetAs[T any](name string, get func(T) string) KeyFunc {
	adapter.Must(name != "", "GetAs needs a name")
	adapter.Must(get != nil, "GetAs needs a function")
	return func(c echo.Context) (string, error) { return keypart.As(c.Get(name), get) }
}

// Literal is the same key for every request: one lock for all of them, or a
// part for core.Join. An empty one panics.
func Literal(key string) KeyFunc { return ofRequest(httpkey.Literal(key)) }

// ofRequest reads a key from the request behind the context.
func ofRequest(key httpkey.KeyFunc) KeyFunc {
	return func(c echo.Context) (string, error) { return key(c.Request()) }
}

package echov5lock

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A Key reads the lock key from a request. The functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	echov5lock.Param("id").Named("account")
type Key = core.Key[*echo.Context]

// Param reads the key from a parameter of the route's path, as in
// "/accounts/:id/transfer". If the route has no parameter with the name, or the route
// is not known yet, as under e.Pre, the error is core.ErrNoKey: see the package
// comment on unknown paths. If a known route has no parameter with the name, the
// observer gets one core.Warned event. Exception: the route ends in a star. An empty
// name panics, and so does one with the signs of a path, such as ":id".
//
// The key is the value that c.Param returns. Echo does not unescape some paths, so
// "42" and "4%32" are two values for the handler, and two keys. With UnescapePathParamValues
// of echo.RouterConfig they are one. If the handler unescapes the value, it needs a core.KeyOf
// that does so too.
func Param(name string) Key {
	return adapter.PathKey("Param", name, func(c *echo.Context) adapter.PathValue {
		value, has := c.PathValues().Get(name)
		if has {
			return adapter.PathValue{Value: value}
		}
		route := knownRoute(c)
		return adapter.PathValue{Route: route, Missing: route != ""}
	})
}

// knownRoute returns the path of the route, or "" if the request has none. If it ends in a star,
// it may be that of the unknown routes of a group.
func knownRoute(c *echo.Context) string {
	if c.RouteInfo().Name == echo.MethodNotAllowedRouteName || strings.HasSuffix(c.Path(), "*") {
		return ""
	}
	return c.Path()
}

// Header reads the key from a request header. If the header occurs more than once,
// the error is core.ErrInvalidKey, since the lock and the handler might read
// different values. An empty name panics.
//
// The client chooses the value: see the package comment on keys.
func Header(name string) Key { return of(nethttplock.Header(name)) }

// IdempotencyKey reads the key from the Idempotency-Key header, which is the same in
// all copies of one request (draft-ietf-httpapi-idempotency-key-header-07, which expired on
// 2026-04-18). The client chooses the header, so join it with the user:
//
//	core.Join(echov5lock.Get("user_id"), echov5lock.IdempotencyKey())
//
// Alone, the header is one key for all users: two users with the same header block
// each other.
//
// The key may be quoted, as in the draft, or bare, as most clients send it; both
// forms are the same key. A bare key consists of visible ASCII except quotes, commas,
// semicolons and backslashes; a quoted key, of printable ASCII. A missing or empty
// key is core.ErrNoKey. A header that occurs more than once, a list, and any other
// malformed value are core.ErrInvalidKey.
//
// Under Idempotent a copy of a request gets the first answer. Under Middleware copies
// do not run at the same time, but a copy that arrives after the first request has
// ended runs again.
func IdempotencyKey() Key { return of(nethttplock.IdempotencyKey()) }

// QueryParam reads the key from a parameter of the URL's query. A parameter that
// occurs more than once, or a malformed query, is core.ErrInvalidKey. An empty name
// panics.
func QueryParam(name string) Key {
	self.Require(name != "", "QueryParam needs a name")
	return of(nethttplock.Query(name)).Describe(adapter.Call("QueryParam", name), "the query parameter "+strconv.Quote(name))
}

// Cookie reads the key from a cookie. Two cookies with the name are
// core.ErrInvalidKey. An empty name panics.
func Cookie(name string) Key { return of(nethttplock.Cookie(name)) }

// RealIP reads the key from c.RealIP: the address of the client. All notations of an address
// are one key. A client without an address, as on a Unix socket, is core.ErrNoKey; a value
// that is no address is core.ErrInvalidKey.
//
// By default it is the address of the peer, which may be your proxy: then all clients have one
// key. Set e.IPExtractor to echo.ExtractIPFromXFFHeader or echo.ExtractIPFromRealIPHeader with the
// addresses of your proxies. With echo.LegacyIPExtractor, as in old releases of Echo v4, a client
// can choose its key.
func RealIP() Key {
	return core.KeyOf(func(c *echo.Context) (string, error) { return adapter.IP(c.RealIP()) }).Describe("RealIP()", "")
}

// Host reads the key from c.Request().Host, the host to which the request was sent.
// Use it in a service in which each tenant has its own host. Alone it is one key for
// all requests of a tenant, so join it with other parts:
//
//	core.Join(echov5lock.Host(), echov5lock.Get("user_id"), echov5lock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant has
// one key on all ports. All notations of an IPv6 address are one key. A missing host
// is core.ErrNoKey. A host with characters other than letters, digits, hyphens,
// underscores and dots is core.ErrInvalidKey: international names have their ASCII
// form (xn--) in requests.
//
// A client can send any host. Let the handler choose the tenant by the same host, and
// refuse unknown hosts. Host does not read X-Forwarded-Host, which a client can
// forge. Behind a proxy that changes the host, set c.Request().Host in a middleware
// before the lock.
func Host() Key { return of(nethttplock.Host()) }

// Get reads the key from a value that an earlier middleware put into c with c.Set,
// such as the authenticated user. Strings, integers and values with a method String
// are keys. A value of another type is core.ErrInvalidKey, and the error names the
// type. A missing or nil value is core.ErrNoKey. An empty name panics.
func Get(name string) Key {
	self.Require(name != "", "Get needs a name")
	return core.KeyOf(func(c *echo.Context) (string, error) { return adapter.Value(c.Get(name)) }).Describe(adapter.Call("Get", name), "")
}

// GetAs reads the key from a value of type T that an earlier middleware put into c
// with c.Set, with the function get, as echo.ContextGet[T] reads it:
//
//	echov5lock.GetAs("user", func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is
// core.ErrInvalidKey, and the error names the type. An empty name or a nil get
// panics.
func GetAs[T any](name string, get func(T) string) Key {
	self.Require(name != "", "GetAs needs a name")
	self.Require(get != nil, "GetAs needs a function")
	return core.KeyOf(func(c *echo.Context) (string, error) { return adapter.ValueAs(c.Get(name), get) }).Describe(adapter.Call("GetAs", name), "")
}

// Literal is the same key for every request: one lock for all of them, or a part for
// core.Join. An empty key panics.
func Literal(key string) Key { return of(nethttplock.Literal(key)) }

// IsRead reports whether a request changes nothing: its method is GET or HEAD. It is for
// core.Key.SharedWhen, and for routes on which these methods keep that promise.
func IsRead(c *echo.Context) bool { return nethttplock.IsRead(c.Request()) }

// of returns a key of net/http's request for that of a context.
func of(key nethttplock.Key) Key { return adapter.Convert(key, (*echo.Context).Request) }

// Form reads the key from a field of a form in the body: urlencoded or multipart,
// sent with POST, PUT or PATCH, or parsed by a middleware before the lock, which may
// have changed the method. An uploaded file does not count. A field that occurs more
// than once is core.ErrInvalidKey, and so is a field that is in the query as well: a
// handler may read either one. An empty name panics.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.FormValue and c.Bind as well as from c.Request().Body.
func Form(name string) Key { return adapter.ConvertError(of(nethttplock.Form(name)), bodyFault) }

// JSONField reads the key from a field of a JSON object in the body, whatever its
// Content-Type. Dots separate nested fields: JSONField("account.id"). An empty name
// in the path panics.
//
// The field is a string or an integer; "42" and 42 are the same key. A missing field,
// null or "" is core.ErrNoKey, and so is an empty body. Any other type, a number with
// a fraction or an exponent, malformed JSON, and more than one value are
// core.ErrInvalidKey. Names match as in encoding/json, which ignores case: "id" and
// "ID" in one object are two values for one field.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.Bind as well as from c.Request().Body. If a middleware
// before the lock binds the body, to validate it, the body is consumed, and the
// request gets 500: let the middleware store the bound value with c.Set, and read the
// key with GetAs.
func JSONField(path string) Key {
	return adapter.ConvertError(of(nethttplock.JSONField(path)), bodyFault)
}

// readBody reads the body of a request for its fingerprint.
func readBody(c *echo.Context, limit int64) ([]byte, error) {
	body, err := adapter.ReadBody(c.Request(), limit)
	return body, bodyFault(err)
}

// bodyFault translates the error of Echo's BodyLimit to core.ErrBodyTooLarge.
func bodyFault(err error) error {
	if echo.StatusCode(err) == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%w: %w", core.ErrBodyTooLarge, echo.ErrStatusRequestEntityTooLarge) // without core.ErrInvalidKey
	}
	return err
}

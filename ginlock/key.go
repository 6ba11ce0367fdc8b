package ginlock

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// A Key reads the lock key from a request. The functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	ginlock.Param("id").Named("account")
type Key = core.Key[*gin.Context]

// Param reads the key from a parameter of the route, as in "/accounts/:id/transfer".
// An unknown route has no parameters, which is core.ErrNoKey: see the package comment
// on unknown routes. If a known route has no parameter with the name, the observer
// gets one core.Warned event. An empty name panics, and so does one with the signs of
// a path, such as ":id".
//
// The key is the value that c.Param returns. In an engine that does not unescape
// values (UseEscapedPath or UseRawPath without UnescapePathValues) "42" and "4%32"
// are two keys. If the handler unescapes the value, it needs a core.KeyOf that
// does so too.
func Param(name string) Key {
	return adapter.PathKey("Param", name, func(c *gin.Context) adapter.PathValue {
		value, hasName := c.Params.Get(name)
		route := c.FullPath()
		return adapter.PathValue{Value: value, Route: route, Missing: route != "" && !hasName}
	})
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
//	core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())
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

// Query reads the key from a parameter of the URL's query. A parameter that occurs
// more than once, or a malformed query, is core.ErrInvalidKey. An empty name panics.
func Query(name string) Key { return of(nethttplock.Query(name)) }

// Cookie reads the key from a cookie, unescaped as by c.Cookie. Two cookies with the
// name, or a cookie that cannot be unescaped, are core.ErrInvalidKey. An empty name
// panics.
func Cookie(name string) Key {
	cookie := nethttplock.Cookie(name)
	return core.KeyOf(func(c *gin.Context) (string, error) {
		escaped, err := cookie.Read(c.Request)
		if err != nil {
			return "", err
		}
		value, err := url.QueryUnescape(escaped.Raw())
		if err != nil {
			return "", fmt.Errorf("%w: a malformed cookie", core.ErrInvalidKey)
		}
		return adapter.Text(value)
	}).Describe(adapter.Call("Cookie", name), "the cookie "+strconv.Quote(name))
}

// ClientIP reads the key from c.ClientIP: the address of the client, from the headers
// of the proxies that the engine trusts. All notations of an address are one key. A
// client without an address, as on a Unix socket, is core.ErrNoKey or
// core.ErrInvalidKey.
//
// By default Gin trusts X-Forwarded-For from any client, so a client can choose its
// key. Call engine.SetTrustedProxies with the addresses of your proxies, or nil for
// none.
func ClientIP() Key {
	return core.KeyOf(func(c *gin.Context) (string, error) { return adapter.IP(c.ClientIP()) }).Describe("ClientIP()", "")
}

// Host reads the key from c.Request.Host, the host to which the request was sent. Use
// it in a service in which each tenant has its own host. Alone it is one key for all
// requests of a tenant, so join it with other parts:
//
//	core.Join(ginlock.Host(), ginlock.Get("user_id"), ginlock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant has
// one key on all ports. All notations of an IPv6 address are one key. A missing host
// is core.ErrNoKey. A host with characters other than letters, digits, hyphens,
// underscores and dots is core.ErrInvalidKey: international names have their ASCII
// form (xn--) in requests.
//
// A client can send any host. Let the handler choose the tenant by the same host, and
// refuse unknown hosts. Host does not read X-Forwarded-Host, which a client can
// forge. Behind a proxy that changes the host, set c.Request.Host in a middleware
// before the lock.
func Host() Key { return of(nethttplock.Host()) }

// Get reads the key from a value that an earlier handler put into c with c.Set, such
// as the authenticated user. Strings, integers and values with a method String are
// keys. A value of another type is core.ErrInvalidKey, and the error names the type.
// A missing or nil value is core.ErrNoKey.
//
// The name is a string, or the value of another type that c.Set was called with. A
// name that is nil, empty or not comparable panics.
func Get(name any) Key {
	mustBeName(name, "Get")
	return core.KeyOf(func(c *gin.Context) (string, error) {
		value, _ := c.Get(name)
		return adapter.Value(value)
	}).Describe(adapter.Call("Get", name), "")
}

// GetAs reads the key from a value of type T that an earlier handler put into c with
// c.Set, with the function get:
//
//	ginlock.GetAs("user", func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is
// core.ErrInvalidKey, and the error names the type. A nil get panics, and so does a
// name that Get does not accept.
func GetAs[T any](name any, get func(T) string) Key {
	mustBeName(name, "GetAs")
	self.Require(get != nil, "GetAs needs a function")
	return core.KeyOf(func(c *gin.Context) (string, error) {
		value, _ := c.Get(name)
		return adapter.ValueAs(value, get)
	}).Describe(adapter.Call("GetAs", name), "")
}

// Literal is the same key for every request: one lock for all of them, or a part for
// core.Join. An empty key panics.
func Literal(key string) Key { return of(nethttplock.Literal(key)) }

// of returns a key of net/http's request for that of a context.
func of(key nethttplock.Key) Key { return adapter.Convert(key, requestOf) }

// requestOf returns the net/http request of a context.
func requestOf(c *gin.Context) *http.Request { return c.Request }

// mustBeName panics unless c.Set accepts the name.
func mustBeName(name any, function string) {
	self.Require(name != nil && name != "", function+" needs a name")
	self.Require(reflect.TypeOf(name).Comparable(), function+" needs a name that is comparable")
}

// IsRead reports whether a request changes nothing: its method is GET or HEAD. It is for
// core.Key.SharedWhen, and for routes on which these methods keep that promise.
func IsRead(c *gin.Context) bool { return nethttplock.IsRead(c.Request) }

// Form reads the key from a field of a form in the body: urlencoded or multipart,
// sent with POST, PUT or PATCH, or parsed by a middleware before the lock, which may
// have changed the method. An uploaded file does not count. A field that occurs more
// than once is core.ErrInvalidKey, and so is a field that is in the query as well: a
// handler may read either one. An empty name panics.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with c.PostForm and c.ShouldBind as well as from c.Request.Body.
func Form(name string) Key { return of(nethttplock.Form(name)) }

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
// the whole body, with c.ShouldBindJSON as well as from c.Request.Body. A middleware
// before the lock that binds the body, to validate it, must keep the body for others:
// it calls c.ShouldBindBodyWithJSON instead of c.ShouldBindJSON. Or the middleware
// stores the bound value with c.Set; GetAs then reads the key from the validated
// value.
func JSONField(path string) Key {
	return adapter.Convert(nethttplock.JSONField(path), func(c *gin.Context) *http.Request {
		if bound, ok := boundBody(c); ok {
			return bound
		}
		return c.Request
	})
}

// boundBody returns a request with the body that c.ShouldBindBodyWith has read and
// keeps in c for later handlers.
func boundBody(c *gin.Context) (*http.Request, bool) {
	kept, _ := c.Get(gin.BodyBytesKey)
	body, _ := kept.([]byte)
	if len(body) == 0 { // as after another middleware has read the body
		return nil, false
	}
	return &http.Request{Body: io.NopCloser(bytes.NewReader(body))}, true
}

// readBody reads the body of a request for its fingerprint.
func readBody(c *gin.Context, limit int64) ([]byte, error) {
	if bound, ok := boundBody(c); ok {
		return adapter.ReadBody(bound, limit)
	}
	return adapter.ReadBody(c.Request, limit)
}

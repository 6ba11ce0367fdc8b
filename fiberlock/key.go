package fiberlock

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A Key reads the lock key from a request. The functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	fiberlock.Params("id").Named("account")
//
// Middleware copies the text of each key, because Fiber uses the memory of a request again, and
// Idempotent keeps only a digest. So a function of core.KeyOf may return c.Get and the like.
// Exception: what Key.Read returns, as in a test, is valid only within the handler.
type Key = core.Key[fiber.Ctx]

// Params reads the key from a parameter of the route, as in "/accounts/:id/transfer". "*" and "+" are
// names, too. If the route has no parameter with the name, as under app.Use without it in the
// path, the error is core.ErrNoKey, and the observer gets one core.Warned event. An empty name
// panics, and so does one with the signs of a path, such as ":id".
//
// The key is the value that c.Params returns. Unless fiber.Config.UnescapePath is set, "42" and
// "4%32" are two values for the handler, and two keys. If the handler unescapes the value, it needs
// a core.KeyOf that does so too.
func Params(name string) Key {
	return adapter.PathKey("Params", name, func(c fiber.Ctx) adapter.PathValue {
		value := c.Params(name)
		return adapter.PathValue{Value: value, Route: c.FullPath(), Missing: value == "" && !hasParam(c, name)}
	})
}

// hasParam reports whether the route of a request has a parameter.
func hasParam(c fiber.Ctx, name string) bool {
	if name == "*" || name == "+" { // stand for "*1" and "+1"
		name += "1"
	}
	anyCase := !c.App().Config().CaseSensitive
	return slices.ContainsFunc(c.Route().Params, func(own string) bool {
		return own == name || anyCase && strings.EqualFold(own, name)
	})
}

// Header reads the key from a request header. If the header occurs more than once,
// the error is core.ErrInvalidKey, since the lock and the handler might read
// different values. An empty name panics.
//
// The client chooses the value: see the package comment on keys.
func Header(name string) Key {
	self.Require(name != "", "Header needs a name")
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.Only(valuesOf(c, name)) }).
		Describe(adapter.Call("Header", name), "the header "+strconv.Quote(name))
}

// IdempotencyKey reads the key from the Idempotency-Key header, which is the same in
// all copies of one request (draft-ietf-httpapi-idempotency-key-header-07, which expired on
// 2026-04-18). The client chooses the header, so join it with the user:
//
//	core.Join(fiberlock.Locals("user_id"), fiberlock.IdempotencyKey())
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
func IdempotencyKey() Key {
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.IdempotencyKey(valuesOf(c, "Idempotency-Key")) }).
		Describe("IdempotencyKey()", `the header "Idempotency-Key"`)
}

// Query reads the key from a parameter of the URL's query. A parameter that occurs
// more than once, or a malformed query, is core.ErrInvalidKey. An empty name panics.
func Query(name string) Key {
	self.Require(name != "", "Query needs a name")
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.QueryValue(queryOf(c), name) }).
		Describe(adapter.Call("Query", name), "the query parameter "+strconv.Quote(name))
}

// Cookies reads the key from a cookie, as c.Cookies does. Two cookies with the name are
// core.ErrInvalidKey. An empty name panics.
func Cookies(name string) Key {
	self.Require(name != "", "Cookies needs a name")
	return core.KeyOf(func(c fiber.Ctx) (string, error) {
		var values []string
		for own, value := range c.Request().Header.Cookies() {
			if string(own) == name {
				values = append(values, string(value))
			}
		}
		return adapter.Only(values)
	}).Describe(adapter.Call("Cookies", name), "the cookie "+strconv.Quote(name))
}

// IP reads the key from c.IP: the address of the peer, or the one in the header of
// fiber.Config.ProxyHeader if TrustProxyConfig names the peer. All notations of an address are one
// key. A header that is a list is core.ErrInvalidKey.
//
// Behind a proxy without these settings, and on a Unix socket (0.0.0.0), all clients share one lock.
// Let the proxy overwrite the header with one address, and let TrustProxyConfig name your proxies
// alone: any other client that it trusts can choose its key. Do not set EnableIPValidation for a
// header that is a list: it takes the first address, which the client has chosen.
func IP() Key {
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.IP(c.IP()) }).Describe("IP()", "")
}

// Host reads the key from c.Host, the host to which the request was sent. Use it in a service in
// which each tenant has its own host. Alone it is one key for all requests of a tenant, so join it
// with other parts:
//
//	core.Join(fiberlock.Host(), fiberlock.Locals("user_id"), fiberlock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant has
// one key on all ports. All notations of an IPv6 address are one key. A missing host
// is core.ErrNoKey. A host with characters other than letters, digits, hyphens,
// underscores and dots is core.ErrInvalidKey: international names have their ASCII
// form (xn--) in requests.
//
// A client can send any host. Let the handler choose the tenant by the same host, and
// refuse unknown hosts. From a proxy that fiber.Config.TrustProxyConfig names, c.Host is
// X-Forwarded-Host.
func Host() Key {
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.Host(c.Host()) }).Describe("Host()", `the header "Host"`)
}

// Locals reads the key from a value that an earlier middleware put into c with c.Locals, such
// as the authenticated user. Strings, integers and values with a method String are
// keys. A value of another type is core.ErrInvalidKey, and the error names the type.
// A missing or nil value is core.ErrNoKey.
//
// The name is a string, or the value of another type that c.Locals was called with. A
// name that is nil, empty or not comparable panics.
func Locals(name any) Key {
	mustBeName(name, "Locals")
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.Value(c.Locals(name)) }).
		Describe(adapter.Call("Locals", name), "")
}

// LocalsAs reads the key from a value of type T that an earlier middleware put into c with
// c.Locals, with the function get:
//
//	fiberlock.LocalsAs("user", func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is
// core.ErrInvalidKey, and the error names the type. A nil get panics, and so does a
// name that Locals does not accept.
func LocalsAs[T any](name any, get func(T) string) Key {
	mustBeName(name, "LocalsAs")
	self.Require(get != nil, "LocalsAs needs a function")
	return core.KeyOf(func(c fiber.Ctx) (string, error) { return adapter.ValueAs(c.Locals(name), get) }).
		Describe(adapter.Call("LocalsAs", name), "")
}

// mustBeName panics unless c.Locals accepts the name.
func mustBeName(name any, function string) {
	self.Require(name != nil && name != "", function+" needs a name")
	self.Require(reflect.TypeOf(name).Comparable(), function+" needs a name that is comparable")
}

// Literal is the same key for every request: one lock for all of them, or a part for
// core.Join. An empty key panics.
func Literal(key string) Key {
	self.Require(key != "", "Literal needs a key")
	return core.KeyOf(func(fiber.Ctx) (string, error) { return key, nil }).Describe(adapter.Call("Literal", key), "")
}

// IsRead reports whether a request changes nothing: its method is GET or HEAD. It is for
// core.Key.SharedWhen, and for routes on which these methods keep that promise.
func IsRead(c fiber.Ctx) bool { return c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead }

// Form reads the key from a field of a form in the body: urlencoded or multipart. An uploaded file
// does not count. A field that occurs more than once is core.ErrInvalidKey, and so is a field that
// is in the query as well, which c.FormValue prefers. An empty name panics.
//
// The handler can still read the whole body; see core.WithMaxBody. With
// fiber.Config.StreamRequestBody, the body is read before the lock is taken.
func Form(name string) Key {
	self.Require(name != "", "Form needs a name")
	return adapter.BodyKey(adapter.Call("Form", name), "the form field "+strconv.Quote(name), func(c fiber.Ctx, limit int64) (string, error) {
		body, err := readBody(c, limit)
		if err != nil {
			return "", err
		}
		return adapter.FormField(c.Get(fiber.HeaderContentType), queryOf(c), body, name)
	})
}

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
// The body is read as it was sent. So a body with a Content-Encoding is core.ErrInvalidKey, although
// c.Body decompresses it for the handler. The handler can still read the whole body; see
// core.WithMaxBody. With fiber.Config.StreamRequestBody, the body is read before the lock is taken.
func JSONField(path string) Key {
	_, _ = adapter.JSONField(nil, path) // panics for an empty name
	return adapter.BodyKey(adapter.Call("JSONField", path), "the JSON field "+strconv.Quote(path), func(c fiber.Ctx, limit int64) (string, error) {
		body, err := readBody(c, limit)
		if err != nil {
			return "", err
		}
		return adapter.JSONField(body, path)
	})
}

// queryOf returns the query of a request.
func queryOf(c fiber.Ctx) string { return string(c.Request().URI().QueryString()) }

// valuesOf returns the values of a header.
func valuesOf(c fiber.Ctx, name string) []string {
	lines := c.Request().Header.PeekAll(name)
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = string(line)
	}
	return values
}

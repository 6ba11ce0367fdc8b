package nethttplock

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A Key reads the lock key from a request. The functions of this package return Keys,
// core.KeyOf makes one from a function of your own, and core combines them:
//
//	nethttplock.PathValue("id").Named("account")
type Key = core.Key[*http.Request]

// Header reads the key from a request header. If the header occurs more than once,
// the error is core.ErrInvalidKey, since the lock and the handler might read
// different values. An empty name panics.
//
// The client chooses the value: see the package comment on keys.
func Header(name string) Key {
	must(name != "", "Header needs a name")
	must(http.CanonicalHeaderKey(name) != "Host", "Header cannot read Host, which net/http keeps in Request.Host: use Host")
	return describe("Header", name, "the header", func(r *http.Request) (string, error) {
		return adapter.Only(r.Header.Values(name))
	})
}

// IdempotencyKey reads the key from the Idempotency-Key header, which is the same in
// all copies of one request (draft-ietf-httpapi-idempotency-key-header-07, which expired on
// 2026-04-18). The client chooses the header, so join it with the user:
//
//	core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey())
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
	return core.KeyOf(func(r *http.Request) (string, error) {
		return adapter.IdempotencyKey(r.Header.Values("Idempotency-Key"))
	}).Describe("IdempotencyKey()", `the header "Idempotency-Key"`)
}

// PathValue reads the key from a wildcard of the route's pattern, as in "POST
// /accounts/{id}/transfer". The mux sets the wildcard before it calls the handler, so
// wrap the handler and not the mux: around a mux the wildcard is always empty, which
// is core.ErrNoKey. There, and if the pattern of the route has no wildcard of the name,
// the observer gets one core.Warned event. An empty name panics, and so does one with the
// signs of a pattern, such as "{id}".
func PathValue(name string) Key {
	return adapter.PathKey("PathValue", name, func(r *http.Request) adapter.PathValue {
		return adapter.PathValue{Value: r.PathValue(name), Route: r.Pattern, Missing: !hasWildcard(r.Pattern, name)}
	})
}

// hasWildcard reports whether a pattern of net/http or of chi has a wildcard of the name.
func hasWildcard(pattern, name string) bool {
	for _, end := range [...]string{"}", "...}", ":"} {
		if strings.Contains(pattern, "{"+name+end) {
			return true
		}
	}
	return false
}

// Query reads the key from a parameter of the URL's query. A parameter that occurs
// more than once, or a malformed query, is core.ErrInvalidKey. An empty name panics.
//
// The handler should read r.URL.Query().Get: r.FormValue returns a field of the body
// in preference to the query.
func Query(name string) Key {
	must(name != "", "Query needs a name")
	return describe("Query", name, "the query parameter", func(r *http.Request) (string, error) {
		return adapter.QueryValue(r.URL.RawQuery, name)
	})
}

// Cookie reads the key from a cookie. Two cookies with the name are
// core.ErrInvalidKey. An empty name panics.
func Cookie(name string) Key {
	must(name != "", "Cookie needs a name")
	return describe("Cookie", name, "the cookie", func(r *http.Request) (string, error) {
		var values []string
		for _, cookie := range r.CookiesNamed(name) {
			values = append(values, cookie.Value)
		}
		return adapter.Only(values)
	})
}

// Form reads the key from a field of a form in the body: urlencoded or multipart,
// sent with POST, PUT or PATCH, or parsed by a middleware before the lock, which may
// have changed the method. An uploaded file does not count. A field that occurs more
// than once is core.ErrInvalidKey, and so is a field that is in the query as well,
// since r.FormValue may return either one. An empty name panics.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body, with r.Body as well as with r.FormValue.
func Form(name string) Key { return adapter.FormKey(name) }

// JSONField reads the key from a field of a JSON object in the body, whatever its
// Content-Type. Dots separate nested fields: JSONField("account.id"). An empty name
// in the path panics.
//
// The field is a string or an integer; "42" and 42 are the same key. Integers are
// compared as they are written. The handler should read them as an int64, and not as
// a float64, in which some integers above 2^53 are equal. A missing field, null or ""
// is core.ErrNoKey, and so is an empty body. Any other type, a number with a fraction
// or an exponent, malformed JSON, and more than one value are core.ErrInvalidKey.
// Names match as in encoding/json, which ignores case: "id" and "ID" in one object
// are two values for one field.
//
// The body is read before the lock is taken; see core.WithMaxBody. The handler can still read
// the whole body.
func JSONField(path string) Key { return adapter.JSONKey(path) }

// RemoteIP reads the key from r.RemoteAddr: the address of the peer, without its
// port. It ignores X-Forwarded-For, which a client can forge. A peer without an IP
// address, as on a Unix socket, is core.ErrNoKey or core.ErrInvalidKey.
//
// Behind a proxy the peer is the proxy, so that all clients share one lock. Put a
// middleware in front that sets RemoteAddr from the proxy's headers, such as chi's
// middleware.RealIP or gorilla's handlers.ProxyHeaders. Both trust these headers from
// any client. Use them only if clients cannot bypass the proxy, and the proxy
// overwrites the headers.
func RemoteIP() Key {
	return core.KeyOf(func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil { // a middleware has set RemoteAddr without a port
			host = r.RemoteAddr
		}
		return adapter.IP(host)
	}).Describe("RemoteIP()", "")
}

// Host reads the key from r.Host, the host to which the request was sent. Use it in a
// service in which each tenant has its own host. Alone it is one key for all requests
// of a tenant, so join it with other parts:
//
//	core.Join(nethttplock.Host(), nethttplock.BasicUser(), nethttplock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant has
// one key on all ports. All notations of an IPv6 address are one key. A missing host
// is core.ErrNoKey. A host with characters other than letters, digits, hyphens,
// underscores and dots is core.ErrInvalidKey: international names have their ASCII
// form (xn--) in requests.
//
// A client can send any host. Let the handler choose the tenant by the same host, and
// refuse unknown hosts. Host does not read X-Forwarded-Host, which a client can
// forge. Behind a proxy that changes the host, set r.Host in a middleware before the
// lock.
func Host() Key {
	return core.KeyOf(func(r *http.Request) (string, error) { return adapter.Host(r.Host) }).Describe("Host()", `the header "Host"`)
}

// BasicUser reads the key from the user name of the Authorization header (Basic). It
// does not check the password: put it behind the middleware that checks it.
func BasicUser() Key {
	return core.KeyOf(func(r *http.Request) (string, error) {
		if fields := r.Header.Values("Authorization"); len(fields) > 1 {
			return adapter.Only(fields)
		}
		user, _, _ := r.BasicAuth()
		return adapter.Text(user)
	}).Describe("BasicUser()", `the user name in the header "Authorization"`)
}

// ContextValue reads the key from a value in the request's context, such as the user
// that an authentication middleware put there. Strings, integers and values with a
// method String are keys. A value of another type is core.ErrInvalidKey, and the
// error names the type. A missing or nil value is core.ErrNoKey. A nil key panics.
func ContextValue(key any) Key {
	must(key != nil, "ContextValue needs a key")
	return core.KeyOf(func(r *http.Request) (string, error) {
		return adapter.Value(r.Context().Value(key))
	}).Describe(adapter.Call("ContextValue", key), "")
}

// ContextValueAs reads the key from a value of type T in the request's context, with
// the function get:
//
//	nethttplock.ContextValueAs(userKey{}, func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey. A value of another type is
// core.ErrInvalidKey, and the error names the type. A nil key or get panics.
func ContextValueAs[T any](key any, get func(T) string) Key {
	must(key != nil, "ContextValueAs needs a key")
	must(get != nil, "ContextValueAs needs a function")
	return core.KeyOf(func(r *http.Request) (string, error) {
		return adapter.ValueAs(r.Context().Value(key), get)
	}).Describe(adapter.Call("ContextValueAs", key), "")
}

// Literal is the same key for every request: one lock for all of them, or a part for
// core.Join. An empty key panics.
func Literal(key string) Key {
	must(key != "", "Literal needs a key")
	return core.KeyOf(func(*http.Request) (string, error) { return key, nil }).Describe(adapter.Call("Literal", key), "")
}

// IsRead reports whether a request changes nothing: its method is GET or HEAD. It is for
// core.Key.SharedWhen, and for routes on which these methods keep that promise.
func IsRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// describe names a function and its argument in errors. kind is what the argument names in a
// request.
func describe(function, name, kind string, read func(*http.Request) (string, error)) Key {
	return core.KeyOf(read).Describe(adapter.Call(function, name), kind+" "+strconv.Quote(name))
}

// must panics with the message if a registration is wrong. The message has no package, because other
// adapters convert these keys.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}

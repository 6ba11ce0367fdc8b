package httpkey

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/keytext"
)

// A Key reads a lock key from net/http's request.
type Key = core.Key[*http.Request]

// Header reads a header that occurs once.
func Header(name string) Key {
	must(name != "", "Header needs a name")
	must(http.CanonicalHeaderKey(name) != "Host", "Header cannot read Host, which net/http keeps in Request.Host: use Host")
	return describe("Header", name, "the header", func(r *http.Request) (string, error) {
		return keytext.Only(r.Header.Values(name))
	})
}

// IdempotencyKey reads the Idempotency-Key header.
func IdempotencyKey() Key {
	return core.KeyOf(func(r *http.Request) (string, error) {
		return keytext.IdempotencyKey(r.Header.Values("Idempotency-Key"))
	}).Describe("IdempotencyKey()", `the header "Idempotency-Key"`)
}

// PathValue reads a wildcard of the route that net/http's mux has matched, or another
// router that calls r.SetPathValue.
func PathValue(name string) Key {
	MustBeWildcard("PathValue", name)
	return describe("PathValue", name, "the path value", func(r *http.Request) (string, error) {
		return Wildcard("PathValue", name, r.PathValue(name), r.Pattern, !hasWildcard(r.Pattern, name))
	})
}

// Query reads a parameter of the query that occurs once. function is the name of the
// adapter's function.
func Query(function, name string) Key {
	must(name != "", function+" needs a name")
	return describe(function, name, "the query parameter", func(r *http.Request) (string, error) {
		values, err := queryValues(r, name)
		if err != nil {
			return "", err
		}
		return keytext.Only(values)
	})
}

// queryValues returns the values of a parameter of the query. A malformed query is an
// error: r.URL.Query would silently drop its malformed parts.
func queryValues(r *http.Request, name string) ([]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, keytext.Invalid("a malformed query")
	}
	return values[name], nil
}

// Cookie reads a cookie that occurs once.
func Cookie(name string) Key {
	must(name != "", "Cookie needs a name")
	return describe("Cookie", name, "the cookie", func(r *http.Request) (string, error) {
		switch cookies := r.CookiesNamed(name); len(cookies) {
		case 0:
			return "", core.ErrNoKey
		case 1:
			return keytext.Text(cookies[0].Value)
		default:
			return "", keytext.Invalid("given %d times", len(cookies))
		}
	})
}

// RemoteIP reads the peer's IP address. RemoteAddr may have no port if a middleware has set
// it. All spellings of one address are one key.
func RemoteIP() Key {
	return core.KeyOf(func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		return keytext.IP(host)
	}).Describe("RemoteIP()", "")
}

// Host reads the host to which the request was sent.
func Host() Key {
	return core.KeyOf(func(r *http.Request) (string, error) { return keytext.Host(r.Host) }).Describe("Host()", `the header "Host"`)
}

// BasicUser reads the user name of an Authorization header that occurs once.
func BasicUser() Key {
	return core.KeyOf(func(r *http.Request) (string, error) {
		if n := len(r.Header.Values("Authorization")); n > 1 {
			return "", keytext.Invalid("given %d times", n)
		}
		user, _, _ := r.BasicAuth()
		return keytext.Text(user)
	}).Describe("BasicUser()", `the user name in the header "Authorization"`)
}

// ContextValue reads a value in the request's context.
func ContextValue(key any) Key {
	must(key != nil, "ContextValue needs a key")
	return core.KeyOf(func(r *http.Request) (string, error) {
		return keytext.Value(r.Context().Value(key))
	}).Describe(keytext.Call("ContextValue", key), "")
}

// ContextValueAs reads a value of type T in the request's context with get.
func ContextValueAs[T any](key any, get func(T) string) Key {
	must(key != nil, "ContextValueAs needs a key")
	must(get != nil, "ContextValueAs needs a function")
	return core.KeyOf(func(r *http.Request) (string, error) {
		return keytext.As(r.Context().Value(key), get)
	}).Describe(keytext.Call("ContextValueAs", key), "")
}

// Literal returns the same key for every request.
func Literal(key string) Key {
	must(key != "", "Literal needs a key")
	return core.KeyOf(func(*http.Request) (string, error) { return key, nil }).Describe(keytext.Call("Literal", key), "")
}

// describe names a function and its argument in errors. kind is what the argument names in a
// request.
func describe(function, name, kind string, key func(*http.Request) (string, error)) Key {
	return core.KeyOf(key).Describe(keytext.Call(function, name), kind+" "+strconv.Quote(name))
}

// must panics with the message if a registration is wrong.
func must(ok bool, message string) {
	if !ok {
		panic("reqlock: " + message)
	}
}

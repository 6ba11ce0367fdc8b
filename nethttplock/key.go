package nethttplock

import "github.com/reqlock/reqlock/internal/adapter/httpkey"

// Header reads the key from a request header. A header that comes more than
// once is core.ErrInvalidKey, since the handler might read another one than
// the lock. An empty name panics.
//
// A client can send whatever it likes: see the package comment on keys.
func Header(name string) KeyFunc { return httpkey.Header(name) }

// IdempotencyKey reads the key from the Idempotency-Key header, by which a
// client marks the copies of one request (draft-ietf-httpapi-idempotency-key-header-07).
// The client chooses it, so join it with who the client is:
//
//	core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey())
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
func IdempotencyKey() KeyFunc { return httpkey.IdempotencyKey() }

// PathValue reads the key from a wildcard of the route's pattern, as in
// "POST /accounts/{id}/transfer". The router sets it on the way to the
// handler, so wrap the handler and not the router: around a whole mux it is
// always empty, which is core.ErrNoKey. An empty name panics.
func PathValue(name string) KeyFunc { return httpkey.PathValue(name) }

// Query reads the key from a parameter of the URL's query. A parameter that
// comes more than once, or a malformed query, is core.ErrInvalidKey. An empty
// name panics.
//
// A handler that reads r.FormValue gets a field of the body before that of the
// query: read r.URL.Query().Get instead.
func Query(name string) KeyFunc { return httpkey.Query(name) }

// Cookie reads the key from a cookie. Two cookies of the name are
// core.ErrInvalidKey. An empty name panics.
func Cookie(name string) KeyFunc { return httpkey.Cookie(name) }

// Form reads the key from a field of a form in the body: urlencoded or
// multipart, sent with POST, PUT or PATCH, or parsed by a middleware before the
// lock, which may have changed the method. An uploaded file does not count. A
// field that comes more than once is core.ErrInvalidKey, and so is one that is
// in the query as well, since r.FormValue prefers now the one and now the
// other. An empty name panics.
//
// The body is read before the lock is taken; see MaxBody. The handler still
// finds all of it, with r.Body as well as with r.FormValue.
func Form(name string, opts ...BodyOption) KeyFunc { return httpkey.Form(name, opts...) }

// JSONField reads the key from a field of a JSON object in the body, whatever
// its Content-Type. Dots lead into objects: JSONField("account.id"). An empty
// name in the path panics.
//
// The field is a string or an integer; "42" and 42 are the same key. Integers
// are taken as they are written, so a handler should read them exactly, as an
// int64, and not as a float64, to which integers above 2^53 are not distinct. A missing
// field, null or "" is core.ErrNoKey, and so is an empty body. Any other type,
// a number with a fraction or an exponent, malformed JSON, and more than one
// value are core.ErrInvalidKey. Names match as in encoding/json, which does
// not look at case: "id" and "ID" in one object are two values for one field.
//
// The body is read before the lock is taken; see MaxBody. The handler still
// finds all of it.
func JSONField(path string, opts ...BodyOption) KeyFunc {
	return httpkey.JSONField(path, opts...)
}

// A BodyOption is a setting of a key function that reads the body.
type BodyOption = httpkey.BodyOption

// MaxBody sets up to how many bytes a key function reads the body: 1 MiB if
// not set. A longer body is core.ErrBodyTooLarge. A limit below 1 panics.
//
// The body is held in memory until the request ends. Where clients may be
// slow, the server's ReadTimeout bounds how long it is waited for.
func MaxBody(bytes int64) BodyOption { return httpkey.MaxBody(bytes) }

// RemoteIP reads the key from r.RemoteAddr: the address of the peer, without
// its port. It never looks at X-Forwarded-For, which a client can forge. A
// peer without an IP address, as on a Unix socket, is core.ErrNoKey or
// core.ErrInvalidKey.
//
// Behind a proxy the peer is the proxy, so that all clients share one lock.
// Put a middleware in front that sets RemoteAddr from what the proxy says,
// such as chi's middleware.RealIP or gorilla's handlers.ProxyHeaders. Both
// believe those headers of anyone: use them only where clients cannot reach
// the server around the proxy, and the proxy overwrites the headers.
func RemoteIP() KeyFunc { return httpkey.RemoteIP() }

// Host reads the key from r.Host, the host to which the request was
// sent. It is for services whose tenants have hosts of their own. Alone it is one key
// for all requests of a tenant, so join it with other parts:
//
//	core.Join(nethttplock.Host(), nethttplock.BasicUser(), nethttplock.IdempotencyKey())
//
// The key is in lower case, without a port and without a dot at its end: a tenant
// has one key on all ports. An IPv6 address has one key, however it is written. No
// host is core.ErrNoKey. A host with characters other than letters, digits,
// hyphens, underscores and dots is core.ErrInvalidKey: international names have
// their ASCII form (xn--) in requests.
//
// A client can send any host. Choose the tenant of the handler by the same host, and
// refuse hosts that no tenant has. Host does not read X-Forwarded-Host, which a
// client can forge. Behind a proxy that changes the host, set r.Host in a
// middleware before the lock.
func Host() KeyFunc { return httpkey.Host() }

// BasicUser reads the key from the user name of the Authorization header
// (Basic). It does not check the password: put it behind the middleware that
// does.
func BasicUser() KeyFunc { return httpkey.BasicUser() }

// ContextValue reads the key from a value in the request's context, such as
// the user that an authentication middleware put there. Strings, integers and
// values with a method String are keys; the key of another type is
// core.ErrInvalidKey, and the error names the type. A missing or nil value is
// core.ErrNoKey. A nil key panics.
func ContextValue(key any) KeyFunc { return httpkey.ContextValue(key) }

// ContextValueAs reads the key from a value of type T in the request's context
// by the function get:
//
//	nethttplock.ContextValueAs(userKey{}, func(u *User) string { return u.ID })
//
// A missing or nil value is core.ErrNoKey; one of another type is
// core.ErrInvalidKey, and the error names the type. A nil key or get panics.
func ContextValueAs[T any](key any, get func(T) string) KeyFunc {
	return httpkey.ContextValueAs(key, get)
}

// Literal is the same key for every request: one lock for all of them, or a
// part for core.Join. An empty one panics.
func Literal(key string) KeyFunc { return httpkey.Literal(key) }

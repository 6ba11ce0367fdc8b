package core

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/reqlock/reqlock/internal/engine"
)

// A RequestKey is what a key function has read from a request: the key of a lock, the name that Named
// has given it, and what Permits or Shared says about it. The zero RequestKey is no key. A RequestKey
// prints and marshals as a digest, because keys may hold personal data, which must not get
// into logs by accident.
type RequestKey struct {
	raw  string
	name string // "" unless Named has set it; never part of the key
	// limit is the limit of Permits, Shared or SharedWhen, if hasLimit is true. Otherwise the
	// view has the limit.
	limit    engine.Limit
	hasLimit bool
	needWait bool // Enter refuses the key without WithWait
}

// NewKey returns a Key without a name and without permits. A key function of your own that
// calls another one returns a Key, and so needs it for the keys that it makes itself. An empty
// key is ErrNoKey.
func NewKey(key string) RequestKey { return RequestKey{raw: key} }

// Raw returns the key itself, as Lock takes it.
func (k RequestKey) Raw() string { return k.raw }

// Name returns the name of the outermost Named, or "" if there is none. Events have it: see
// Event.Name.
func (k RequestKey) Name() string { return k.name }

// Endpoint returns the key that the Idempotent middlewares give to BeginKey: the EndpointKey
// of the key, with the same name and permits. It is for an adapter of your own.
func (k RequestKey) Endpoint(method, route string) RequestKey {
	k.raw = EndpointKey(method, route, k.raw)
	return k
}

// Options returns the options with which Lock and Do lock the key as a middleware does, if
// Permits, Shared or SharedWhen is around its key function:
//
//	locks.With(key.Options()...).Do(ctx, key.Raw(), fn)
//
// It returns nil if the key is locked as the Locker says.
func (k RequestKey) Options() []Option {
	switch {
	case !k.hasLimit:
		return nil
	case k.limit > engine.Exclusive:
		return []Option{WithPermits(int(k.limit))}
	default:
		return []Option{WithShared(k.limit == engine.Unlimited)}
	}
}

// NeedWait returns the key for a request that must not be refused at once if its key is held:
// Enter refuses the request on a Locker without WithWait, or with WithWait(0). The SharedReads
// of the adapters return such a key. It is for an adapter of your own.
func (k RequestKey) NeedWait() RequestKey {
	k.needWait = true
	return k
}

// String returns the first 12 hex digits of the key's SHA-256, as EventKey does.
func (k RequestKey) String() string { return EventKey{k.raw}.String() }

// GoString returns the same as String, for %#v.
func (k RequestKey) GoString() string { return k.String() }

// MarshalText returns the same as String.
func (k RequestKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// EndpointKey returns the key that the Idempotent middlewares give to Begin. ReadRecord and
// Resolve take it. It is for an adapter of your own: the functions EndpointKey of the adapters
// make the key from what a client has sent. For HTTP, the arguments are the method, the pattern
// of the route as the framework writes it, and the key that the middleware's key function
// returns. For gRPC they are "", the full method, and the key.
//
// The result is a digest. So the client's key cannot be read by accident in Redis, and the
// same key on two endpoints makes two keys.
func EndpointKey(method, route, key string) string {
	digest := sha256.New()
	for _, part := range [...]string{"1", method, route, key} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}

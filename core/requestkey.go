package core

import (
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// A RequestKey is what a Key has read from one request: the key of a lock, the name that Named has
// given it, and how many requests may hold it. The zero RequestKey is no key. A RequestKey prints
// and marshals as a digest, because keys may hold personal data, which must not get into logs by
// accident.
type RequestKey struct{ read lockKey }

// A lockKey is the inside of a RequestKey, and the key of a lock in this package. If it has no
// limit of its own, the view has the limit.
type lockKey = bridge.RequestKey

// Raw returns the key itself, as Lock takes it.
func (k RequestKey) Raw() string { return k.read.Raw }

// Name returns the name of the outermost Named, or "" if there is none. Events have it: see
// Event.Name.
func (k RequestKey) Name() string { return k.read.Name }

// Options returns the options with which Lock and Do lock the key as a middleware does, if the Key
// has Permits, Shared or SharedWhen:
//
//	locks.With(key.Options()...).Do(ctx, key.Raw(), fn)
//
// It returns nil if the key is locked as the Locker says.
func (k RequestKey) Options() []Option {
	switch limit := engine.Limit(k.read.Limit); {
	case !k.read.HasLimit:
		return nil
	case limit > engine.Exclusive:
		return []Option{WithPermits(k.read.Limit)}
	default:
		return []Option{WithShared(limit == engine.Unlimited)}
	}
}

// String returns the first 12 hex digits of the key's SHA-256, as EventKey does.
func (k RequestKey) String() string { return EventKey{k.read.Raw}.String() }

// GoString returns the same as String, for %#v.
func (k RequestKey) GoString() string { return k.String() }

// MarshalText returns the same as String.
func (k RequestKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// lockKeysOf appends keys that are given as texts.
func lockKeysOf(to []lockKey, keys []string) []lockKey {
	for _, key := range keys {
		to = append(to, lockKey{Raw: key})
	}
	return to
}

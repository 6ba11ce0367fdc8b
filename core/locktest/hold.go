package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// Hold locks a key as another process would, with the same options, and
// returns the function that releases it, which may be called more than once.
// The key stays locked, and its lease renewed, until then or until the test
// ends. If the key is locked already, by whomever, the test fails.
func (l *Locks) Hold(key string) (release func()) {
	l.tb.Helper()
	elsewhere := l.other.locker.With(core.WithRenewal(true), core.WithMaxHold(0))
	lease, err := elsewhere.TryLock(context.Background(), key)
	if err != nil {
		l.tb.Fatalf("locktest: hold %q: %v", key, err)
	}
	return func() { _ = lease.Release(context.Background()) }
}

// HoldFor is Hold with the key that a key function reads from a request: the
// key for which the middleware with that function would lock. If the function
// returns an error, core.ErrSkip included, the test fails.
func HoldFor[R any](l *Locks, key core.KeyFunc[R], r R) (release func()) {
	l.tb.Helper()
	k, err := key(r)
	if err != nil {
		l.tb.Fatalf("locktest: the key to hold: %v", err)
	}
	return l.Hold(k)
}

// Abandon leaves a key locked as a process does that took the lock and
// crashed: nobody renews it, nobody releases it, it comes free when the TTL is
// over. If the key is locked already, by whomever, or the TTL is below 1 ms,
// the test fails.
func (l *Locks) Abandon(key string, ttl time.Duration) {
	l.tb.Helper()
	if ttl < time.Millisecond {
		l.tb.Fatalf("locktest: abandon %q: the TTL %v is below 1ms", key, ttl)
	}
	set := redis.SetArgs{Mode: "NX", TTL: ttl}
	err := l.other.link.client.SetArgs(context.Background(), l.nameOf(key), "abandoned", set).Err()
	switch {
	case errors.Is(err, redis.Nil):
		l.tb.Fatalf("locktest: abandon %q: it is locked already", key)
	case err != nil:
		l.tb.Fatalf("locktest: abandon %q: %v", key, err)
	}
}

// Expire takes a key away from whoever holds its lock, as if its TTL had
// passed. From now on others can lock it. The holder learns of it when it next
// renews the lease, a third of its TTL after it did so last, or else shortly
// before the TTL is over: its context ends with core.ErrLost. Outside of a
// synctest bubble, give the Locker a short TTL. If the key is not locked, the
// test fails.
func (l *Locks) Expire(key string) {
	l.tb.Helper()
	if !l.redis.Del(l.nameOf(key)) {
		l.tb.Fatalf("locktest: expire %q: it is not locked", key)
	}
}

// nameOf returns the name that a lock has in Redis. Only a Locker knows its
// prefix and how it writes keys, so one that has a Redis for itself locks the
// key, and its token is looked for.
func (l *Locks) nameOf(key string) string {
	l.tb.Helper()
	blank := newRedis()
	defer blank.Close()
	scribe, err := newProcess(blank, l.opts)
	if err != nil {
		l.tb.Fatalf("locktest: %v", err)
	}
	defer scribe.end(0)
	lease, err := scribe.locker.TryLock(context.Background(), key)
	if err != nil {
		l.tb.Fatalf("locktest: the key %q: %v", key, err)
	}
	defer func() { _ = lease.Release(context.Background()) }()
	for _, name := range blank.Keys() {
		if value, err := blank.Get(name); err == nil && value == lease.Token() {
			return name
		}
	}
	l.tb.Fatalf("locktest: the lock of %q has no key in Redis", key)
	return ""
}

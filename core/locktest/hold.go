package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// Hold locks a key as another process with the same options would. The returned function
// releases the key and may be called more than once. Until then, or until the test ends, the
// key stays locked and its lease is renewed. If the key is already locked, the test fails.
//
// With more options, Hold locks the key as a view of that process would: Hold("printer",
// core.WithPermits(3)) holds one of three permits, and Hold("config", core.WithShared(true)) is
// a reader. To use up all permits, call Hold once for each.
func (l *Locks) Hold(key string, opts ...core.Option) (release func()) {
	l.tb.Helper()
	elsewhere := l.other.locker.With(opts...).With(core.WithRenewal(true), core.WithMaxHold(0))
	lease, err := elsewhere.TryLock(context.Background(), key)
	if err != nil {
		l.tb.Fatalf("locktest: hold %q: %v", key, err)
	}
	return func() { _ = lease.Release(context.Background()) }
}

// HoldFor is Hold with the key that a Key reads from a request, as a Middleware with that Key would.
// If the Key has Permits or Shared, it holds one permit, or is a reader. If reading fails, also with
// core.ErrSkip, and for several keys (core.All), the test fails.
//
// The lock of a route of Idempotent has another key, so HoldFor does not hold it. Give Hold "i:"
// and the result of core.EndpointKey, or see the package comment on attempts.
func HoldFor[R any](l *Locks, key core.Key[R], r R) (release func()) {
	l.tb.Helper()
	k, err := key.Read(r)
	if err != nil {
		l.tb.Fatalf("locktest: the key to hold: %v", err)
	}
	return l.Hold(k.Raw(), k.Options()...)
}

// Abandon locks a key as a process that crashed would: the lock is not renewed and not
// released, and is free when the TTL ends. If the key is already locked, or the TTL is below
// 1 ms, the test fails.
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

// Expire deletes the key of a held lock, as if its TTL had ended. Other callers can then lock
// the key. If the key is shared, all its leases are lost. The context of a lost lease ends with
// core.ErrLost at the next renewal, which follows the last one after a third of the TTL. Without
// renewal it ends shortly before the TTL would end. Outside a synctest bubble, give the Locker a
// short TTL. If the key is not locked, the test fails.
func (l *Locks) Expire(key string) {
	l.tb.Helper()
	if !l.redis.Del(l.nameOf(key)) {
		l.tb.Fatalf("locktest: expire %q: it is not locked", key)
	}
}

// nameOf returns the name of a lock in Redis. The prefix and the encoding of keys are private
// to a Locker. So another Locker with the same options locks the key on an empty Redis, and
// nameOf finds the key that has the token.
func (l *Locks) nameOf(key string) string {
	l.tb.Helper()
	empty := newRedis()
	defer empty.Close()
	process, err := newProcess(empty, l.opts)
	if err != nil {
		l.tb.Fatalf("locktest: %v", err)
	}
	defer process.end(0)
	lease, err := process.locker.With(core.WithShared(false)).TryLock(context.Background(), key)
	if err != nil {
		l.tb.Fatalf("locktest: the key %q: %v", key, err)
	}
	defer func() { _ = lease.Release(context.Background()) }()
	for _, name := range empty.Keys() {
		if value, err := empty.Get(name); err == nil && value == lease.Token() {
			return name
		}
	}
	l.tb.Fatalf("locktest: the lock of %q has no key in Redis", key)
	return ""
}

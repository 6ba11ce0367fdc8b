package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// A Lease is the right to hold a lock for a time. It ends when it is released or lost: then its
// Context has ended, and Extend returns ErrLost. Key, Token, Shared and Fence stay. All methods
// are safe for concurrent use. They do nothing on a nil Lease, so a deferred Release needs no check.
type Lease struct {
	locker *Locker
	key    string
	hold   *engine.Hold
	once   sync.Once // makes the context at the first call of Context
	ctx    leaseContext
	nested *engine.Nested // nil unless the lease is nested
	// attempt is the attempt that holds the lock and releases it; nil for a plain lock.
	attempt *Attempt
	parent  *Lease // the lease in the context from which this one is derived; nil if none
	target  string // of the HTTP request of a middleware: see bridge.IsTwice
}

// Key returns the key of the lock, without the prefix. The key of an Attempt's lock is "i:"
// and the key of the Attempt.
func (l *Lease) Key() string {
	if l == nil {
		return ""
	}
	return l.key
}

// String names the lease by a digest of its key, so that the key and the token do not get
// into logs by accident.
func (l *Lease) String() string { return "reqlock.Lease(" + EventKey{l.Key()}.String() + ")" }

// GoString returns the same as String, for %#v.
func (l *Lease) GoString() string { return l.String() }

// Token returns the value of the key in Redis during the lease. A program that has the token
// can release the lock, so keep it out of logs and away from clients.
func (l *Lease) Token() string {
	if l == nil {
		return ""
	}
	return l.hold.Token()
}

// Shared reports whether there may be other leases of the key at the same time: see WithPermits
// and WithShared. A nested lease shares the lock of its outer lease, so it is shared if that one
// is. Shared is false on a nil Lease.
func (l *Lease) Shared() bool { return l != nil && l.hold.Limit().IsShared() }

// Fence returns the fencing number of the lease. It is greater than the numbers of all
// earlier leases of the same key. Exception: shared leases that overlap have the same number,
// see WithShared. It is 0 without WithFencing and on a nil Lease. See WithFencing.
func (l *Lease) Fence() int64 {
	if l == nil {
		return 0
	}
	return l.hold.Fence()
}

// ValidUntil returns the time at which the lease ends unless it is renewed. With renewal on,
// later calls return later times. It does not change when the lease is lost: see Context. After
// the release it is the time of the release, if that is earlier. The time has a monotonic clock
// reading. It is the zero time on a nil Lease.
func (l *Lease) ValidUntil() time.Time {
	switch {
	case l == nil:
		return time.Time{}
	case l.nested != nil:
		return l.nested.ValidUntil()
	}
	return l.hold.ValidUntil()
}

// Context returns the context in which the holder may rely on the lock. It is derived from
// the context that was given to Lock. That of an Attempt's lease has only the values of that
// context: see WithClientCancel. It is cancelled
//
//   - with the cause ErrLost before the TTL of the lease ends in Redis,
//   - with the cause ErrLost if Redis has lost the key, by a deletion, an eviction or a
//     failover: only the next renewal detects it, up to a third of the TTL later,
//   - with the cause ErrMaxHold, ErrClosed or ErrHandedOver,
//   - when the lease is released.
//
// The context of a nested lease is also cancelled with the cause ErrLost when the release of
// the outer lease begins. On a nil Lease, Context returns the background context.
func (l *Lease) Context() context.Context {
	if l == nil {
		return context.Background()
	}
	l.once.Do(func() {
		if l.ctx.lease == nil {
			l.ctx = leaseContext{l.hold.Context(), l}
		}
	})
	return &l.ctx
}

// Extend renews the lease once, to last at least ttl from now. It is independent of regular
// renewals. Use it before a step during which renewals may fail, and for leases without
// renewal.
//
// The error is ErrLost if the lease has ended, ErrUnavailable if Redis did not reply, or
// ctx's error if ctx ended before the reply arrived. A ttl below 1 ms is refused, and so is
// a ttl above the quarantine of a quorum. A nil ctx is the background context.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if l == nil {
		return nil
	}
	if err := checkUnit("Extend", ttl, 0); err != nil {
		return err
	}
	if ttl < time.Millisecond {
		return fmt.Errorf("reqlock: Extend: %v is below 1ms", ttl)
	}
	if most := l.locker.settings.quarantine; most > 0 && ttl > most {
		return fmt.Errorf("reqlock: Extend: %v is more than the quarantine of the quorum, %v: see WithQuarantine", ttl, most)
	}
	ctx = orBackground(ctx)
	if l.nested != nil {
		loss, err := l.nested.Extend(ctx, ttl)
		return l.ended(ctx, loss, err)
	}
	loss, err := l.hold.Extend(ctx, ttl)
	return l.ended(ctx, loss, err)
}

// Release frees the lock, or passes it to the next waiter. The release is sent even if ctx
// has ended. ctx limits only how long the caller waits for the confirmation of Redis, or
// 50 ms longer if the caller's goroutine sends the command itself: see New. Later calls do
// nothing and return the same. A nil ctx is the background context.
//
// On a nested lease, Release ends only the nested lease and sends nothing. On the lease of
// an Attempt it does nothing. After Detach it ends only the context of the lease. After Handover it
// does nothing and returns what Handover did.
//
// The error is ErrLost if the lease had ended before. It is ErrUnavailable if Redis did not
// reply, so that the key may stay locked until its TTL ends. It is ctx's error if ctx ended
// first.
//
// If the first reply is lost or late, the release is sent again. If the second send then
// finds another value in the key or none, the error is nil, because the first send may have
// freed the key. So Release may return nil although the server has lost the key, as in a
// failover.
func (l *Lease) Release(ctx context.Context) error {
	switch {
	case l == nil || l.attempt != nil:
		return nil
	case l.nested != nil:
		return causeOf(l.nested.Release())
	}
	ctx = orBackground(ctx)
	loss, err := l.hold.Release(ctx)
	return l.ended(ctx, loss, err)
}

// beginRelease begins the release and does not wait. awaited says that a call of Release
// follows.
func (l *Lease) beginRelease(awaited bool) {
	switch {
	case l.attempt != nil:
	case l.nested != nil:
		l.nested.Release()
	case awaited:
		l.hold.BeginAwaitedRelease()
	default:
		l.hold.BeginRelease()
	}
}

// orBackground returns ctx, or the background context if ctx is nil. A method that ends a
// lock must not panic: the lock would stay held and renewed.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// ended converts the result of a command on the lease to an error of this package.
func (l *Lease) ended(ctx context.Context, loss engine.Loss, err error) error {
	switch {
	case loss != engine.NotLost:
		return causeOf(loss)
	case err == nil:
		return nil
	case ctx.Err() != nil && err == ctx.Err(): //nolint:errorlint // ctx's own error, not a fault that wraps an equal error
		return err
	default:
		refusal := unavailable(err)
		refusal.RetryAfter = l.locker.settings.retryAfter
		return l.locker.withRequests(refusal)
	}
}

// nest makes the empty lease inner a nested lease of this lease. If this lease has ended,
// nest does nothing and returns false.
func (l *Lease) nest(ctx context.Context, inner *Lease) bool {
	nested := l.hold.Nest(ctx)
	if nested == nil {
		return false
	}
	inner.locker, inner.key, inner.hold, inner.nested, inner.target = l.locker, l.key, l.hold, nested, l.target
	inner.parent, _ = leaseOf(ctx)
	inner.ctx = leaseContext{nested.Context(), inner}
	return true
}

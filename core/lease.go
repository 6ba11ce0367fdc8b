package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
)

// A Lease is a lock that is held. It ends when it is released or lost. All its
// methods are safe for concurrent use, and do nothing on a nil Lease, so that
// a deferred Release needs no check.
type Lease struct {
	locker *Locker
	key    string
	hold   *engine.Hold
	once   sync.Once // makes the context, when it is asked for
	ctx    leaseContext
	nested *engine.Nested // under another lease of the same key; nil is not nested
	// attempt is the one that the lock is for; it releases the lock. nil is none.
	attempt *Attempt
	around  *Lease // the next lease outwards under which the holder runs
}

// leaseContext is the context of a lease, and knows it. It is a part of the
// lease, so that it costs nothing.
type leaseContext struct {
	context.Context
	lease *Lease
}

// String names the context by its lease, where a context is printed.
func (c *leaseContext) String() string { return c.lease.String() }

// Value returns the lease, or what its parent has.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

// Key returns the key of the lock, without the prefix. That of an Attempt's lock is
// "i:" and the key of the Attempt.
func (l *Lease) Key() string {
	if l == nil {
		return ""
	}
	return l.key
}

// String returns a text that names the lease by a digest of its key, so that
// the key and the token do not get into logs by chance.
func (l *Lease) String() string { return "reqlock.Lease(" + EventKey{l.Key()}.String() + ")" }

// GoString returns the same as String, for %#v.
func (l *Lease) GoString() string { return l.String() }

// Token returns the value that the key carries in Redis while the lease lives.
// Whoever knows it can release the lock: it is not for clients and not for
// logs.
func (l *Lease) Token() string {
	if l == nil {
		return ""
	}
	return l.hold.Token()
}

// Fence returns the fencing number of the lease, which is greater than that of
// every lease of the same key before it; 0 without WithFencing, and on a nil
// Lease. See WithFencing.
func (l *Lease) Fence() int64 {
	if l == nil {
		return 0
	}
	return l.hold.Fence()
}

// ValidUntil returns when the lease ends if it is not renewed any more; with
// renewal on, later calls return later times. It has a monotonic clock
// reading. It is the zero time on a nil Lease.
func (l *Lease) ValidUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.hold.ValidUntil()
}

// Context returns the context under which the lock may be relied on. It is
// derived from the one that was given to Lock. It is cancelled with the cause
// ErrLost before the lease can end in Redis, with ErrMaxHold, or with
// ErrClosed; and when the lease is released. That of a nested lease is also cancelled
// with the cause ErrLost when the release of the outer lease begins. On a nil Lease
// it is the background context.
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

// Extend renews the lease once, to live for at least ttl from now, beyond the
// renewals that happen anyhow. It is for a step that must not be caught by a
// pause of renewals, and for leases without renewal.
//
// A nil ctx is the background context. The error is ErrLost if the lease ended, ErrUnavailable if Redis did not
// answer, or ctx's error if ctx ended before the answer came. A ttl that is not
// positive is an error of its own, and so is one that is longer than the quarantine
// of a quorum.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if l == nil {
		return nil
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

// Release gives the lock back. The release is sent whatever ctx says; ctx
// bounds only how long the caller waits for Redis to confirm it, or 50 ms longer
// where the caller sends it itself: see New. Later calls do nothing and return
// the same. On the lease of an Attempt it does nothing. On a nested lease it ends
// the nested lease alone, and sends nothing. A nil ctx is the background context.
//
// The error is nil, also where the lock passed to the next waiter; ErrLost if
// the lease had ended before; ErrUnavailable if Redis did not answer, so that
// the key may stay until its TTL; or ctx's error if ctx ended first.
//
// The error is also nil where the first reply of Redis is lost or late, and a second
// send finds the key without the token: the first send may have freed the key. So
// ErrLost is not certain if the server has lost the key, as in a failover.
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

// beginRelease gives the lock back and waits for nothing.
func (l *Lease) beginRelease() {
	switch {
	case l.attempt != nil:
	case l.nested != nil:
		l.nested.Release()
	default:
		l.hold.BeginRelease()
	}
}

// orBackground returns ctx, or the background context for a caller who passed nil: a
// panic of what ends a lock would leave the lock held and renewed.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// ended words the end of a command on the lease.
func (l *Lease) ended(ctx context.Context, loss engine.Loss, err error) error {
	switch {
	case loss != engine.NotLost:
		return causeOf(loss)
	case err == nil:
		return nil
	case ctx.Err() != nil && err == ctx.Err(): //nolint:errorlint // the very error of ctx, not a fault that is like it
		return err
	default:
		return &Error{Kind: ErrUnavailable, RetryAfter: l.locker.settings.retryAfter, Cause: err}
	}
}

// nest makes an empty lease one for code that runs under this lease already, with a
// context of its own. It returns false, and does nothing, if this lease has ended.
func (l *Lease) nest(ctx context.Context, inner *Lease) bool {
	nested := l.hold.Nest(ctx)
	if nested == nil {
		return false
	}
	inner.locker, inner.key, inner.hold, inner.nested = l.locker, l.key, l.hold, nested
	inner.around, _ = FromContext(ctx)
	inner.ctx = leaseContext{nested.Context(), inner}
	return true
}

// leaseKey is the key under which a context carries its innermost Lease.
type leaseKey struct{}

// FromContext returns the lease under which the code with this context runs:
// the innermost one, where there are several. For the several keys of one
// request it is that of the first key.
func FromContext(ctx context.Context) (*Lease, bool) {
	lease, ok := ctx.Value(leaseKey{}).(*Lease)
	return lease, ok
}

// mustContext panics if there is no context: nothing is locked yet.
func mustContext(ctx context.Context) { must(ctx != nil, "the context is nil") }

// outerLease returns the lease of the key under which ctx runs, if it is one of
// the same root Locker and still lives. There is none once ctx has ended.
func outerLease(ctx context.Context, l *Locker, key string) *Lease {
	mustContext(ctx)
	lease, _ := FromContext(ctx)
	for ; lease != nil; lease = lease.around {
		if lease.key == key && lease.locker.engine == l.engine && lease.hold.Alive() && ctx.Err() == nil {
			return lease
		}
	}
	return nil
}

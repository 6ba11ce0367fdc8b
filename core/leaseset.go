package core

import (
	"context"
	"slices"
)

// A LeaseSet holds the leases of several keys that were locked together. LockAll and Detach make it.
// All methods are safe for concurrent use. They do nothing on a nil LeaseSet, so a deferred
// Release needs no check.
type LeaseSet struct {
	taken []*Lease // in the order in which they were taken
	named []*Lease // one for each key that the caller gave; nil for a single key
	// one and first are the memory of taken and of its first lease. Most requests have
	// only one lease, and so need no further allocation.
	one   [1]*Lease
	first Lease
	// ctx is derived from the contexts of all leases: it ends when one lease is lost.
	ctx context.Context
}

// LockAll takes the locks of several keys, for code that cannot run inside DoAll:
//
//	both, err := locks.LockAll(ctx, []string{"account:42", "account:7"})
//	if err != nil {
//		return err
//	}
//	defer func() { _ = both.Release(context.Background()) }()
//	return transfer(both.Context(), both.Lease("account:42").Fence(), both.Lease("account:7").Fence())
//
// It locks each key once, one after the other in byte order, so callers that give the same keys
// in another order do not deadlock. While it waits for one key, and for a moment when it fails, it
// holds the keys before it. So give the key that many callers share a name that sorts last. One
// wait covers all keys: see Lock. The error is that of Lock, and then no
// key is locked. Without a key, and with an empty key, it is ErrNoKey.
//
// Take all keys of an operation in one call. Two callers that take them one after the other
// in different orders wait for each other: see "Deadlocks" in the package comment.
//
// A middleware writes its keys as Named and Join describe. LockAll and Do lock the same keys
// if they write them in the same way.
func (l *Locker) LockAll(ctx context.Context, keys []string) (*LeaseSet, error) {
	if len(keys) == 0 || slices.Contains(keys, "") {
		err := l.withRequests(&Error{Kind: ErrNoKey})
		l.observeRefused(ctx, lockKey{}, false, err)
		return nil, err
	}
	var few [4]lockKey // avoids an allocation for most callers
	return acquireAll(ctx, l, lockKeysOf(few[:0], keys), l.waitOr(waitForever))
}

// Context returns the context in which the holder may rely on all locks. It ends as the
// context of a Lease does, as soon as one of the leases is lost or released. LeaseFromContext
// finds the lease of the first key in it, and LeasesFromContext the leases of all keys. On a
// nil LeaseSet it is the background context.
func (s *LeaseSet) Context() context.Context {
	if s == nil {
		return context.Background()
	}
	return s.ctx
}

// Lease returns the lease of a key. It returns nil if the LeaseSet does not have the key: the
// methods of a nil Lease do nothing, and its Fence is 0.
func (s *LeaseSet) Lease(key string) *Lease {
	if s == nil {
		return nil
	}
	for _, lease := range s.taken {
		if lease.key == key {
			return lease
		}
	}
	return nil
}

// Leases returns one lease for each key that was given to LockAll, in the same order. Equal
// keys have the same lease. After Detach it returns those of LeasesFromContext.
func (s *LeaseSet) Leases() []*Lease {
	switch {
	case s == nil:
		return nil
	case s.named != nil:
		return slices.Clone(s.named)
	default:
		return slices.Clone(s.taken)
	}
}

// Release frees all locks together, or passes them to their next waiters. It is Lease.Release
// for all leases, and waits about as long as for one of them. Later calls do nothing and
// return the same. A nil ctx is the background context.
//
// The error is ErrLost if a lease had ended before. Otherwise it is the first error of
// Lease.Release.
func (s *LeaseSet) Release(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.release(orBackground(ctx))
}

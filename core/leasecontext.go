package core

import "context"

// leaseContext is the context of a lease and carries the lease. It is a field of Lease, so it
// needs no allocation.
type leaseContext struct {
	context.Context
	lease *Lease
}

// String names the lease, because the context package prints it.
func (c *leaseContext) String() string { return c.lease.String() }

// Value returns the lease for leaseKey and leasesKey, and the parent's value for any other
// key.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) || key == (leasesKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

// leaseKey is the key of the innermost Lease among the values of a context.
type leaseKey struct{}

// LeaseFromContext returns the lease of the context, and true if there is one. If there are
// several, it returns the innermost lease. For a request with several keys that is the lease
// of the first key; LeasesFromContext returns the leases of all keys. It also finds the lease of
// the request to which a *gin.Context or a fiber.Ctx belongs.
//
// The lease stays in the context after its end, so that code can log its Key or Fence. So true does
// not mean that the lock is held: ask lease.Context().Err() for that. A Lock under the context of a
// released lease is refused, because the context has ended. Under context.WithoutCancel of it, Lock
// takes a lock of its own, also of the same key, unless a lease outside still holds that key.
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	if lease, ok := leaseOf(ctx); ok {
		return lease, true
	}
	if request := requestContext(ctx); request != nil {
		return leaseOf(request)
	}
	return nil, false
}

// leaseOf returns the lease that ctx carries itself, and true if there is one.
func leaseOf(ctx context.Context) (*Lease, bool) {
	lease, ok := ctx.Value(leaseKey{}).(*Lease)
	return lease, ok
}

// mustContext panics if ctx is nil. That is safe where no lock is held yet.
func mustContext(ctx context.Context) { must(ctx != nil, "the context is nil") }

// heldLease returns the lease of the key that ctx carries, if the lease belongs to the same
// root Locker and is alive. It returns nil if ctx has ended.
func heldLease(ctx context.Context, l *Locker, key string) *Lease {
	mustContext(ctx)
	lease, _ := leaseOf(ctx)
	if lease = aliveLease(lease, l, key); lease == nil || ctx.Err() != nil {
		return nil
	}
	return lease
}

// aliveLease returns the first of a lease and its parents that holds the key, belongs to the
// same root Locker and is alive. It returns nil if there is none.
func aliveLease(lease *Lease, l *Locker, key string) *Lease {
	for ; lease != nil; lease = lease.parent {
		if lease.key == key && lease.locker.engine == l.engine && lease.hold.Alive() {
			return lease
		}
	}
	return nil
}

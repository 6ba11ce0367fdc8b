package core

import "context"

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

// LeasesFromContext returns the leases of the innermost Enter, middleware, DoAll or LockAll of the
// context, in a fixed order: one entry for each key of All, in the order of its arguments, or
// one for each key that was given. The entry of a key that returned ErrSkip is nil.
// Equal keys have the same lease. With it, code reads the fencing number of each key:
//
//	leases := core.LeasesFromContext(ctx) // of the keys "from" and "to"
//	store.Transfer(ctx, leases[0].Fence(), leases[1].Fence())
//
// The methods of a nil Lease do nothing, and its Fence is 0. All entries are nil if the
// request runs without its locks by WithFailOpen. A lock of a single key has one entry.
// It also finds the leases of the request to which a *gin.Context or a fiber.Ctx belongs. It returns
// nil if the context is not under a lock of reqlock. After the release, it returns the leases that
// have ended: see LeaseFromContext.
func LeasesFromContext(ctx context.Context) []*Lease {
	found := ctx.Value(leasesKey{})
	if found == nil {
		if request := requestContext(ctx); request != nil {
			found = request.Value(leasesKey{})
		}
	}
	switch found := found.(type) {
	case *Lease:
		return []*Lease{found}
	case *LeaseSet:
		return found.Leases()
	case *unlockedContext:
		return make([]*Lease, found.keys)
	default:
		return nil
	}
}

// leasesKey is the key, among the values of a context, of what LeasesFromContext reads.
type leasesKey struct{}

// A setContext is the context of several leases.
type setContext struct {
	context.Context
	main *Lease // the lease of the first key
	set  *LeaseSet
}

// Value returns the leases for leaseKey and leasesKey, and the parent's value for any other
// key.
func (c *setContext) Value(key any) any {
	switch key {
	case leaseKey{}:
		return c.main
	case leasesKey{}:
		return c.set
	}
	return c.Context.Value(key)
}

// An unlockedContext is the context of a request that runs without a lock.
type unlockedContext struct {
	context.Context
	keys int // how many keys the request would have
}

// Value returns the context itself for leasesKey, and the parent's value for any other key.
func (c *unlockedContext) Value(key any) any {
	if key == (leasesKey{}) {
		return c
	}
	return c.Context.Value(key)
}

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

// requestContexts are the functions of adapter.UnwrapContext. They are set in init functions only.
var requestContexts []func(ctx context.Context) (request context.Context, ok bool) //nolint:gochecknoglobals // see above

// requestContext returns the context of the request to which a framework's context belongs, or nil.
func requestContext(ctx context.Context) context.Context {
	for _, unwrap := range requestContexts {
		if request, ok := unwrap(ctx); ok {
			return request
		}
	}
	return nil
}

// hidesLease reports whether ctx is the context of a framework, such as a *gin.Context, or is derived
// from one, whose request holds the lock of the key, while ctx does not carry that lease. A caller
// with such a context would wait for its own request.
//
// The caller does not get a nested lease. Gin uses its contexts again for other requests: in
// a goroutine that outlives its request, the context may be that of another request.
func hidesLease(ctx context.Context, l *Locker, key string) bool {
	request := requestContext(ctx)
	if request == nil {
		return false
	}
	lease, _ := leaseOf(request)
	return aliveLease(lease, l, key) != nil
}

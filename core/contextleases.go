package core

import "context"

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

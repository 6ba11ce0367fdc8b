package core

import "context"

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

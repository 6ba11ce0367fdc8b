package core

import (
	"context"
	"reflect"
)

// ginContextKey is the key, among the values of a *gin.Context, of that context itself. Gin
// exports it as gin.ContextKey. core does not import Gin.
const ginContextKey = "_gin-gonic/gin/contextkey"

// hidesLease reports whether ctx is a *gin.Context, or is derived from one, whose request
// holds the lock of the key, while ctx does not carry that lease. The engine of such a
// context has no ContextWithFallback. A caller with such a context would wait for its own
// request.
//
// The caller does not get a nested lease. Gin uses its contexts again for other requests: in
// a goroutine that outlives its request, the context may be that of another request.
func hidesLease(ctx context.Context, l *Locker, key string) bool {
	request := requestContext(ctx.Value(ginContextKey))
	if request == nil {
		return false
	}
	lease, _ := LeaseFromContext(request) //nolint:contextcheck // the lease of that context is meant
	return aliveLease(lease, l, key) != nil
}

// requestContext returns the context of the request of a *gin.Context, or nil. It reads the
// exported field Request, since no method of a *gin.Context returns the request.
func requestContext(gin any) context.Context {
	v := reflect.ValueOf(gin)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("Request")
	if !field.IsValid() || field.Kind() != reflect.Pointer || field.IsNil() || !field.CanInterface() {
		return nil
	}
	request, ok := field.Interface().(interface{ Context() context.Context })
	if !ok {
		return nil
	}
	return request.Context()
}

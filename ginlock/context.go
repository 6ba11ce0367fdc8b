package ginlock

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
)

// A *gin.Context has the values of its request only if its engine has ContextWithFallback. core finds
// the lease and the attempt of the request in any *gin.Context, and in contexts that are derived
// from one.
func init() { //nolint:gochecknoinits // see adapter.UnwrapContext
	adapter.UnwrapContext(func(ctx context.Context) (request context.Context, ok bool) {
		c, ok := ctx.Value(gin.ContextKey).(*gin.Context)
		if !ok || c.Request == nil { // as in a context of gin.CreateTestContext
			return nil, false
		}
		return c.Request.Context(), true
	})
}

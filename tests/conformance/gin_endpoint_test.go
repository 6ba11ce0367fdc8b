package conformance

import (
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

var ginIdempotency = idempotency[*gin.Context, ginlock.Option]{
	request:     func(c *gin.Context) *http.Request { return c.Request },
	user:        core.Join(core.Of(ginUser), ginlock.IdempotencyKey()),
	tenant:      core.Join(ginlock.Host(), core.Of(ginUser), ginlock.IdempotencyKey()),
	methods:     ginlock.WithMethods,
	optionalKey: ginlock.WithOptionalKey,
	fingerprint: ginlock.WithFingerprint,
	none:        ginlock.WithoutFingerprint,
	maxBody:     ginlock.WithMaxBody,
	uncertain:   ginlock.WithUncertain,
	free:        ginlock.FreeOnFailure,
	stored:      ginlock.WithStored,
	replayed:    ginlock.WithReplayedHeaders,
}

func ginUser(c *gin.Context) string {
	user, _, _ := c.Request.BasicAuth()
	return user
}

// ginEndpoint registers Idempotent before the handler.
func ginEndpoint(locks *core.Locker, e endpoint) http.Handler {
	engine := gin.New()
	if e.recovers {
		engine.Use(gin.RecoveryWithWriter(io.Discard))
	}
	if e.outer != nil {
		engine.Use(func(c *gin.Context) {
			if !e.outer(c.Writer, c.Request) {
				c.Abort()
			}
		})
	}
	engine.Use(ginlock.Idempotent(locks, ginIdempotency.key(e), ginIdempotency.options(e)...))
	h := func(c *gin.Context) {
		attempt, _ := ginlock.AttemptFromContext(c)
		e.handler(invocation{
			ResponseWriter: c.Writer, r: c.Request, attempt: attempt,
			fail: func(status int) { _ = c.AbortWithError(status, errors.New("failed")) },
			bare: c.Status,
		})
	}
	engine.Any(paymentsPath, h)
	engine.Any(refundsPath, h)
	return engine
}

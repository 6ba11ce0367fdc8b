package conformance

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

func overGin() *framework {
	return &framework{
		name:      "ginlock",
		serve:     serveGin,
		endpoint:  ginEndpoint,
		lacks:     map[feature]string{earlyHint: "c.Writer treats any status as the status of the answer"},
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
		failure: func(f frame) error {
			if last := f.(ginFrame).c.Errors.Last(); last != nil {
				return last
			}
			return nil
		},
	}
}

var ofGin = adapter[*gin.Context]{
	header:      ginlock.Header,
	idempotency: ginlock.IdempotencyKey,
	body:        func() ginlock.Key { return ginlock.JSONField("id") },
	isRead:      ginlock.IsRead,
	hook: func(h hook) core.Option {
		return ginlock.WithErrorHandler(func(c *gin.Context, _ error) {
			if h == ownHook {
				c.String(http.StatusTeapot, hookText)
			}
		})
	},
}

// serveGin registers the locks on the group and on the route.
func serveGin(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	stack := func(stack []lock) (handlers gin.HandlersChain) {
		for _, l := range stack {
			handlers = append(handlers, ginlock.Middleware(locks, ofGin.lockKey(l), ofGin.options(l)...))
		}
		return handlers
	}
	engine := gin.New()
	if r.recovers {
		engine.Use(gin.RecoveryWithWriter(io.Discard))
	}
	if r.outer != nil {
		engine.Use(func(c *gin.Context) { r.outer(ginFrame{c}) })
	}
	group := engine.Group(groupPath, stack(r.group)...)
	group.Match(routeMethods, routePath, append(stack(r.locks), func(c *gin.Context) {
		r.handler(ginCall{httpHandling{c.Writer, c.Request}, c})
	})...)
	return serveHTTP(t, engine)
}

type ginFrame struct{ c *gin.Context }

func (f ginFrame) Context() context.Context       { return f.c.Request.Context() }
func (f ginFrame) SetContext(ctx context.Context) { f.c.Request = f.c.Request.WithContext(ctx) }
func (f ginFrame) Request() *http.Request         { return f.c.Request }
func (f ginFrame) Next()                          { f.c.Next() }

type ginCall struct {
	httpHandling
	c *gin.Context
}

func (c ginCall) Lease() (*core.Lease, bool) { return core.LeaseFromContext(c.c) }
func (c ginCall) Leases() []*core.Lease      { return core.LeasesFromContext(c.c) }
func (c ginCall) Reply(text string)          { c.c.String(http.StatusOK, "%s", text) }
func (c ginCall) Refuse(text string)         { c.c.String(http.StatusConflict, "%s", text) }

var ginIdempotency = idempotency[*gin.Context]{
	request: func(c *gin.Context) *http.Request { return c.Request },
	user:    core.Join(core.Getter(ginUser), ginlock.IdempotencyKey()),
	tenant:  core.Join(ginlock.Host(), core.Getter(ginUser), ginlock.IdempotencyKey()),
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
	if e.inside != nil {
		engine.Use(ginlock.Idempotent(locks, ginIdempotency.user, needless))
		engine.Use(ginlock.Middleware(locks, ofGin.lockKey(*e.inside), ofGin.options(*e.inside)...))
	}
	h := func(c *gin.Context) {
		attempt, _ := core.AttemptFromContext(c)
		e.handler(invocation{
			ResponseWriter: c.Writer, r: c.Request, attempt: attempt,
			fail: func(status int, cause error) {
				if _ = c.Error(errors.Join(errors.New("failed"), cause)); status != 0 {
					c.AbortWithStatus(status)
				}
			},
			bare: c.Status,
		})
	}
	engine.Any(paymentsPath, h)
	engine.Any(refundsPath, h)
	return engine
}

package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A KeyFunc reads the lock key from a request. Functions of this package, functions
// of core and your own functions can be combined:
//
//	core.Named("account", ginlock.Param("id"))
//
// A function of your own that returns a string is accepted as well. core.Func converts it
// where it stands beside other key functions, as in core.First or Also.
type KeyFunc = core.KeyFunc[*gin.Context]

// Middleware runs the following handlers of a request under a lock. Put it before the
// handler of a route, or into a group or the engine with Use. key chooses the lock:
// requests with the same key run one at a time, in all processes that use the same
// Redis. The options are options of core, which are passed to l.With, and options of
// this package.
//
// Without core.WithWait a request is refused at once if another request holds its
// lock: the error goes to c.Error, the chain is aborted, and WriteError answers.
// Otherwise the handlers find the lease with FromContext, and in c.Request.Context(),
// which is cancelled if the lease is lost. The lock is freed when the last handler
// returns, panics or ends its goroutine, and not before, even if the client
// disconnects. If the lock is lost and they give no answer, the client gets lease_lost
// of core.RefusalOf instead of an empty 200. c.Writer is not replaced. After the lock,
// c.Request is the request from before the lock again.
//
// Middleware panics if l or key is nil, or if an option is invalid, has no
// effect on its requests or belongs to another adapter. The middleware is safe for
// concurrent use.
func Middleware[K string | core.RequestKey](l *core.Locker, key func(*gin.Context) (K, error), opts ...core.Option) gin.HandlerFunc {
	return middleware(l, registration.KeyOf(self, "Middleware", l, key), opts)
}

// middleware is Middleware for each form of key function.
func middleware(l *core.Locker, key KeyFunc, opts []core.Option) gin.HandlerFunc {
	l = adapter.Must(registration.View(self, "Middleware", bridge.HTTPLock, l, opts))
	onError, _ := errorHandler.Value(l)
	keys := append([]KeyFunc{key}, registration.AlsoOf[*gin.Context](self, l)...)
	if err := httpkey.CheckSharedReads(self, l, keys); err != nil {
		panic(err)
	}
	wait, mistakes := httpreply.NewWaitCheck(self, l), httpkey.NewMistakeCheck(self, l)
	maxBody := bridge.SettingsOf(l).MaxBody

	return func(c *gin.Context) {
		r := c.Request
		wait.Check(r)
		httpkey.LimitBody(r, maxBody)
		pass := httpattempt.Enter(r.Context())
		defer pass.Leave()
		ctx, release, err := core.Enter(pass.Inside(r.Context()), l, c, keys...)
		httpkey.LeaveBody(r)
		if err != nil {
			mistakes.Check(err)
			onError.refuse(c, err, pass)
			return
		}
		defer release()
		pass.Run()
		if _, bound := boundBody(c); !bound {
			wait.CheckBody(r)
		}
		defer restore(c, r)
		c.Request = r.WithContext(ctx)
		before := stateOf(c)
		c.Next()
		ended := context.Cause(ctx)
		pass.Returned(ended)
		if loss := before.lossOf(ended, c); loss != nil {
			before.answerLoss(c, loss, pass)
		}
	}
}

// restore sets the request of c to the one from before the lock: code that runs after
// the lock must not get a context that ended with the lease. It copies the form that
// a handler has parsed.
func restore(c *gin.Context, r *http.Request) {
	httpkey.CopyParsedForm(c.Request, r)
	c.Request = r
}

// FromContext returns the lease under which a request runs, and false if there is
// none. If a middleware locks several keys, it is the lease of the first key. It does
// not depend on the engine's ContextWithFallback.
func FromContext(c *gin.Context) (*core.Lease, bool) {
	if c.Request == nil { // as in a context of gin.CreateTestContext
		return nil, false
	}
	return core.LeaseFromContext(c.Request.Context())
}

// Leases returns the leases of all keys under which a request runs: one entry for each key
// function of the innermost Middleware, in the order of registration. It is nil for a key
// function that returned core.ErrSkip. See core.LeasesFromContext.
func Leases(c *gin.Context) []*core.Lease {
	if c.Request == nil {
		return nil
	}
	return core.LeasesFromContext(c.Request.Context())
}

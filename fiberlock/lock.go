package fiberlock

import (
	"cmp"
	"context"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Middleware runs the following handlers of a request under a lock. Put it before the handler of a
// route, or into a group or the app with Use: see the package comment. key chooses the lock:
// requests with the same key run one at a time, in all processes that use the same Redis. The
// options are options of core, which are passed to l.With, and options of this package.
//
// Without core.WithWait a request is refused at once if another request holds its lock: WriteError
// answers. Otherwise the handlers find the lease in c.Context() (core.LeaseFromContext), which is
// cancelled if the lease is lost. The lock is freed when c.Next returns, when a handler panics or
// when it ends its goroutine, and not before. If the lock is lost and the handlers give no answer,
// the client gets lease_lost of core.RefusalOf instead of an empty 200 or the error of the context.
// After the lock, c.Context() is the context from before the lock again.
//
// Middleware panics if l is nil or key is the zero Key, if an option is invalid, has no
// effect on its requests or belongs to another adapter, for a key of SharedWhen without
// core.WithWait above 0, and for Permits or Shared of a key with an option that excludes
// them: see core.WithPermits. The middleware is safe for concurrent use.
func Middleware(l *core.Locker, key Key, opts ...core.Option) fiber.Handler {
	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, adapter.Cloned(key), opts))
	onError, _ := errorHandler.Value(lock.Locker())

	return func(c fiber.Ctx) error {
		entry, err := lock.Enter(c.Context(), c)
		defer entry.Leave()
		if err != nil {
			return onError.refuse(c, err, entry)
		}
		err = serve(c, entry)
		loss := lossOf(entry.Context(), c, err)
		switch {
		case entry.IsInside(): // that one answers
			return cmp.Or(loss, err)
		case loss == nil:
			return withoutText(err)
		}
		adapter.WriteRefusal(newWriter(c), loss)
		return nil
	}
}

// serve runs the handlers behind a middleware.
func serve(c fiber.Ctx, entry adapter.Entry) error {
	defer setContext(c.Context(), c)
	setContext(entry.Context(), c)
	err := c.Next()
	entry.Returned()
	return err
}

// lossOf is adapter.LossOf for handlers that have given no answer and no status. err is what they have
// returned.
func lossOf(ctx context.Context, c fiber.Ctx, err error) error {
	if c.IsAbandoned() || err == nil && hasAnswer(c) {
		return nil
	}
	return adapter.LossOf(ctx, err, statusIn(err))
}

// contextKey is the key, among the values of a fiber.Ctx, of the context of its request.
type contextKey struct{}

// setContext sets the context of a request. After the lock, c must not have a context that ended with
// the lease.
func setContext(ctx context.Context, c fiber.Ctx) {
	if !c.IsAbandoned() {
		c.SetContext(ctx)
		c.RequestCtx().SetUserValue(contextKey{}, ctx) // as c.Locals, which allocates
	}
}

// A fiber.Ctx does not have the values of c.Context(). core finds the lease and the attempt of the
// request in any fiber.Ctx, and in contexts that are derived from one.
func init() { //nolint:gochecknoinits // see adapter.UnwrapContext
	adapter.UnwrapContext(func(ctx context.Context) (request context.Context, ok bool) {
		request, ok = ctx.Value(contextKey{}).(context.Context)
		return request, ok
	})
}

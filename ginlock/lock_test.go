package ginlock_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// The lock is held from the middleware to the end of the last handler. It is free
// when an outer middleware continues after c.Next.
func TestLockIsHeldUntilTheLastHandlerEnds(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	var steps []string
	step := func(name string) {
		if !adaptertest.IsFree(t, locks.Locker) {
			name += " locked"
		}
		steps = append(steps, name)
	}
	around := func(name string) gin.HandlerFunc {
		return func(c *gin.Context) {
			step(name)
			c.Next()
			step(name + " again")
		}
	}
	r := gin.New()
	r.GET("/", around("outer"), ginlock.Middleware(locks.Locker, literal), around("inner"),
		func(*gin.Context) { step("first") }, func(*gin.Context) { step("second") })
	call(t, r, http.MethodGet, "/")
	want := []string{
		"outer", "inner locked", "first locked", "second locked", "inner again locked", "outer again",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("%q", steps)
	}
}

// A handler that aborts, under the lock, ends the chain and the lock.
func TestAbortUnderTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	r.GET("/", ginlock.Middleware(locks.Locker, literal),
		func(c *gin.Context) { c.AbortWithStatus(http.StatusTeapot) }, mustNotRun(t))
	if w := call(t, r, http.MethodGet, "/"); w.Code != http.StatusTeapot || !adaptertest.IsFree(t, locks.Locker) {
		t.Errorf("status %d, held %v", w.Code, !adaptertest.IsFree(t, locks.Locker))
	}
}

// A request that skips the lock runs while another request holds it.
func TestSkippedRequestRunsWithoutLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	release := locks.Hold(theKey)
	defer release()
	writes := func(c *gin.Context) bool { return c.Request.Method != http.MethodGet }
	r := gin.New()
	r.Use(ginlock.Middleware(locks.Locker, literal.When(writes)))
	r.Any("/", func(c *gin.Context) {
		if _, found := core.LeaseFromContext(c); found {
			t.Error("there is a lease")
		}
		ok(c)
	})
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodPost: 409} {
		if w := call(t, r, method, "/"); w.Code != want {
			t.Errorf("%s: status %d", method, w.Code)
		}
	}
}

// A middleware locks all of its keys, and LeaseFromContext returns the lease of the first key.
func TestMiddlewareLocksAllKeys(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	r.GET("/", ginlock.Middleware(locks.Locker, core.All(ginlock.Literal("b"), ginlock.Literal("a"), ginlock.Query("c"), ginlock.Literal("b"))), func(c *gin.Context) {
		for _, key := range []string{"a", "b", "c"} {
			if _, err := locks.TryLock(t.Context(), key); !errors.Is(err, core.ErrBusy) {
				t.Errorf("%s is free: %v", key, err)
			}
		}
		if lease, _ := core.LeaseFromContext(c); lease.Key() != "b" {
			t.Errorf("the lease is that of %q", lease.Key())
		}
		ok(c)
	})
	if w := call(t, r, http.MethodGet, "/?c=c"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, key := range []string{"a", "b", "c"} {
		release := locks.Hold(key)
		if w := call(t, r, http.MethodGet, "/?c=c"); w.Code != http.StatusConflict {
			t.Errorf("with %s held: status %d", key, w.Code)
		}
		release()
	}
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":        {func() { ginlock.Middleware(nil, literal) }, "locker"},
		"zero Key":          {func() { ginlock.Middleware(locks, ginlock.Key{}) }, "needs a key"},
		"nil option":        {func() { ginlock.Middleware(locks, literal, nil) }, "option is nil"},
		"foreign option":    {func() { ginlock.Middleware(locks, literal, adaptertest.ForeignOption()) }, adaptertest.ForeignOptionText},
		"bad setting":       {func() { ginlock.Middleware(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":      {func() { ginlock.Middleware(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"nil error handler": {func() { ginlock.WithErrorHandler(nil) }, "WithErrorHandler"},
		"Param":             {func() { ginlock.Param("") }, "Param"},
		"Param colon":       {func() { ginlock.Param(":id") }, `Param(":id"): write the name alone, as in Param("id")`},
		"Header":            {func() { ginlock.Header("") }, "Header"},
		"Query":             {func() { ginlock.Query("") }, "Query"},
		"Cookie":            {func() { ginlock.Cookie("") }, "Cookie"},
		"Form":              {func() { ginlock.Form("") }, "Form"},
		"JSONField":         {func() { ginlock.JSONField("account.") }, "JSONField"},
		"Get":               {func() { ginlock.Get("") }, "Get"},
		"Get nil":           {func() { ginlock.Get(nil) }, "Get"},
		"Get a slice":       {func() { ginlock.Get([]string{"user"}) }, "comparable"},
		"GetAs":             {func() { ginlock.GetAs("", func(s string) string { return s }) }, "GetAs"},
		"GetAs nil":         {func() { ginlock.GetAs[string]("user", nil) }, "GetAs"},
		"Literal":           {func() { ginlock.Literal("") }, "Literal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return closingEngine(ginlock.Middleware(locks, literal)) },
		"Idempotent": func(locks *core.Locker) http.Handler { return closingEngine(ginlock.Idempotent(locks, literal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			adaptertest.CheckCaller(t, locks.Locker, build(locks.Locker), ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// closingEngine returns an engine that closes the Locker during the request.
func closingEngine(middleware gin.HandlerFunc) http.Handler {
	r := gin.New()
	r.POST("/", middleware, func(c *gin.Context) { adaptertest.CloseLocker(c.Request) })
	return r
}

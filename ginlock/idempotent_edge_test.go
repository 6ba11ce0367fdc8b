package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// Two engines that are mounted with StripPrefix.
func TestIdempotentMountedEngines(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	mux := http.NewServeMux()
	for _, name := range []string{"payments", "refunds"} {
		engine := gin.New()
		engine.POST("/", ginlock.Idempotent(locks, byKey), func(c *gin.Context) { c.String(201, name) })
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, engine))
	}
	adaptertest.Pay(t, mux, "/payments/", "k", "")
	if w := adaptertest.Pay(t, mux, "/refunds/", "k", ""); w.Body.String() != "refunds" {
		t.Errorf("the refund got %d %q", w.Code, w.Body)
	}
}

// A success without a body is stored, even with an error in c.Errors for the log.
func TestIdempotentErrorForTheLog(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	runs := 0
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		_ = c.Error(errors.New("the receipt could not be mailed"))
		c.Status(http.StatusNoContent)
	})
	for range 2 {
		if w := adaptertest.Pay(t, engine, "/", "log", ""); w.Code != http.StatusNoContent {
			t.Errorf("status %d, want 204", w.Code)
		}
	}
	if runs != 1 {
		t.Errorf("answered 204, and ran %d times", runs)
	}
}

// A middleware before Idempotent sets the status, and the handler writes nothing.
// The retry gets the status of the first answer.
func TestIdempotentStatusOutside(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]gin.HandlerFunc{
		"the same status": func(c *gin.Context) { c.Status(http.StatusAccepted) },
		"no status":       func(*gin.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := gin.New()
			runs := 0
			outside := http.StatusAccepted
			engine.Use(func(c *gin.Context) { c.Status(outside) })
			engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
				runs++
				handler(c)
			})
			for range 2 {
				if w := adaptertest.Pay(t, engine, "/", "log", ""); w.Code != http.StatusAccepted {
					t.Errorf("status %d, want 202", w.Code)
				}
				outside = http.StatusOK // the retry meets another version of the service
			}
			if runs != 1 {
				t.Errorf("answered 202, and ran %d times", runs)
			}
		})
	}
}

// c.JSON of a value that cannot be marshaled sends 200: a copy does not run.
func TestIdempotentRenderError(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	runs := 0
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		c.JSON(http.StatusOK, func() {})
	})
	for range 2 {
		if w := adaptertest.Pay(t, engine, "/", "log", ""); w.Code != http.StatusOK {
			t.Errorf("status %d", w.Code)
		}
	}
	if runs != 1 {
		t.Errorf("answered 200, and ran %d times", runs)
	}
}

// The context of a handler ends before the handler returns. Where the handler
// chose no status, the outcome is unknown: a retry is refused. A chosen status is
// the answer, also 200 without a body.
func TestIdempotentContextEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler func(c *gin.Context)
		retry   int
	}{
		"an error":    {func(c *gin.Context) { _ = c.Error(c.Request.Context().Err()) }, http.StatusConflict},
		"no status":   {func(*gin.Context) {}, http.StatusConflict},
		"status 200":  {func(c *gin.Context) { c.Status(http.StatusOK) }, http.StatusConflict},
		"status 202":  {func(c *gin.Context) { c.Status(http.StatusAccepted) }, http.StatusAccepted},
		"a text, 200": {func(c *gin.Context) { c.String(http.StatusOK, "paid") }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := gin.New()
			runs := 0
			engine.Use(func(c *gin.Context) { // a timeout
				ctx, cancel := context.WithCancel(c.Request.Context())
				defer cancel()
				c.Set("cancel", func() { cancel() })
				c.Request = c.Request.WithContext(ctx)
				c.Next()
			})
			engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey, core.WithClientCancel(true)), func(c *gin.Context) {
				runs++
				c.MustGet("cancel").(func())()
				test.handler(c)
			})
			adaptertest.Pay(t, engine, "/", "log", "")
			if w := adaptertest.Pay(t, engine, "/", "log", ""); w.Code != test.retry || runs != 1 {
				t.Errorf("the retry got %d, want %d; %d runs", w.Code, test.retry, runs)
			}
		})
	}
}

// After HandleContext has sent an answer, a panic does not free the key.
func TestIdempotentPanicAfterHandleContext(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.POST("/elsewhere", func(c *gin.Context) { c.String(http.StatusCreated, "paid") })
	runs := 0
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		c.Request.URL.Path = "/elsewhere"
		engine.HandleContext(c)
		panic("crash")
	})
	func() {
		defer func() { _ = recover() }()
		adaptertest.Pay(t, engine, "/", "k", "")
	}()
	adaptertest.WantProblem(t, adaptertest.Pay(t, engine, "/", "k", ""), http.StatusConflict, "outcome_unknown")
	if runs != 1 {
		t.Errorf("the handler has run %d times", runs)
	}
}

// A request that is routed again, and refused by the lock of that route, has not run.
func TestIdempotentHandleContextRefused(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	engine := gin.New()
	engine.POST("/old", ginlock.Idempotent(locks.Locker, byKey), func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		engine.HandleContext(c)
	})
	engine.POST("/new", ginlock.Middleware(locks.Locker, literal), ok)
	for range 2 {
		adaptertest.WantProblem(t, adaptertest.Pay(t, engine, "/old", "k", ""), http.StatusConflict, "busy")
	}
}

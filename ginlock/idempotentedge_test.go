package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
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
	pay(t, mux, "/payments/", "k", "")
	if w := pay(t, mux, "/refunds/", "k", ""); w.Body.String() != "refunds" {
		t.Errorf("the refund got %d %q", w.Code, w.Body)
	}
}

// A success without a body, beside an error that is for the log.
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
		w := pay(t, engine, "/", "log", "")
		t.Log(w.Code, w.Header())
	}
	if runs != 1 {
		t.Errorf("answered 204, and ran %d times", runs)
	}
}

// A status that was set outside and is the answer of a handler that writes nothing.
func TestIdempotentStatusOutside(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	runs := 0
	engine.Use(func(c *gin.Context) { c.Status(http.StatusAccepted) })
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		c.Status(http.StatusAccepted)
	})
	for range 2 {
		w := pay(t, engine, "/", "log", "")
		t.Log(w.Code, w.Header())
	}
	if runs != 1 {
		t.Errorf("answered 202, and ran %d times", runs)
	}
}

// c.JSON of what cannot be marshaled: 200 on the wire.
func TestIdempotentRenderError(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	runs := 0
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		c.JSON(http.StatusOK, func() {})
	})
	for range 2 {
		w := pay(t, engine, "/", "log", "")
		t.Log(w.Code, w.Header(), w.Body)
	}
	if runs != 1 {
		t.Errorf("answered 200, and ran %d times", runs)
	}
}

// A handler that leaves without an answer because its context has ended.
func TestIdempotentContextEndedWithError(t *testing.T) {
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
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		runs++
		c.MustGet("cancel").(func())()
		_ = c.Error(c.Request.Context().Err())
	})
	for range 2 {
		w := pay(t, engine, "/", "log", "")
		t.Log(w.Code, w.Header(), w.Body)
	}
	if runs != 1 {
		t.Errorf("ran %d times", runs)
	}
}

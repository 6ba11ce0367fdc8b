package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A handler that was cut off and gives no answer must not look like a success, nor, unless
// nothing has happened, like a refusal after which the client may try again.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	noEffect := func(c *gin.Context) {
		if attempt, ok := core.AttemptFromContext(c); ok {
			attempt.Decide(core.EndNoEffect)
		}
	}
	for name, test := range map[string]struct {
		handler       gin.HandlerFunc
		inTime        bool   // it does not wait for the end of its lease
		lock, attempt string // the code of the answer; "" is the handler's own
	}{
		"no answer":           {func(*gin.Context) {}, false, "lease_lost", "outcome_unknown"},
		"no effect":           {noEffect, false, "lease_lost", "unavailable"},
		"the context's end":   {func(c *gin.Context) { _ = c.Error(c.Request.Context().Err()) }, false, "lease_lost", "outcome_unknown"},
		"the cause":           {func(c *gin.Context) { _ = c.Error(context.Cause(c.Request.Context())) }, false, "lease_lost", "outcome_unknown"},
		"the end of another":  {func(c *gin.Context) { _ = c.Error(core.ErrClosed) }, true, "lease_lost", "outcome_unknown"},
		"an error of its own": {func(c *gin.Context) { _ = c.Error(errors.New("own")) }, false, "", ""},
		"headers": {func(c *gin.Context) {
			c.Header("Retry-After", "7")
			c.Header("Location", "/payments/1")
		}, false, "lease_lost", "outcome_unknown"},
		"an answer":               {func(c *gin.Context) { c.String(http.StatusOK, "done") }, false, "", ""},
		"an answer and the cause": {func(c *gin.Context) { c.Status(http.StatusAccepted); _ = c.Error(core.ErrLost) }, false, "", ""},
		"a status":                {func(c *gin.Context) { c.Status(http.StatusAccepted) }, false, "", ""},
		"flushed":                 {func(c *gin.Context) { c.Writer.Flush() }, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, limit := locktest.New(t), core.WithMaxHold(time.Millisecond)
			if test.inTime {
				limit = core.WithMaxHold(0)
			}
			engine := gin.New()
			handler := func(c *gin.Context) {
				if !test.inTime {
					<-c.Request.Context().Done()
				}
				test.handler(c)
			}
			lock, attempt := ginlock.Middleware(locks.Locker, byKey, limit), ginlock.Idempotent(locks.Locker, byKey, limit)
			engine.POST("/lock", lock, handler)
			engine.POST("/attempt", attempt, handler)
			engine.POST("/inside", ginlock.Idempotent(locks.Locker, byKey), ginlock.Middleware(locks.Locker, literal, limit), handler)
			engine.POST("/lock/replaced", lock, leaveWriter, handler)
			engine.POST("/attempt/replaced", attempt, leaveWriter, handler)
			for path, code := range map[string]string{
				"/lock": test.lock, "/attempt": test.attempt, "/inside": test.attempt,
				"/lock/replaced": test.lock, "/attempt/replaced": test.attempt,
			} {
				w := adaptertest.Pay(t, engine, path, "k", "")
				adaptertest.WantLoss(t, w, code)
				if code != "" && w.Header().Get("Content-Encoding") != "" {
					t.Errorf("%v", w.Header())
				}
			}
		})
	}
}

// WriteError finds the type of the problem in the context of the request.
func TestWriteErrorOfALossHasTheProblemType(t *testing.T) {
	t.Parallel()
	opts := []core.Option{core.WithMaxHold(time.Millisecond), core.WithProblemType("/errors/")}
	engine := gin.New()
	engine.POST("/", ginlock.Middleware(locktest.New(t).Locker, literal, opts...), func(c *gin.Context) {
		<-c.Request.Context().Done()
		ginlock.WriteError(c, context.Cause(c.Request.Context()))
	})
	adaptertest.WantTypedLoss(t, adaptertest.Pay(t, engine, "/", "k", ""))
}

// leaveWriter is a middleware that compresses, as some do: its writer stays in c, and must not be
// used after it has returned.
func leaveWriter(c *gin.Context) {
	w := &goneWriter{ResponseWriter: c.Writer}
	c.Writer = w
	c.Header("Content-Encoding", "none")
	c.Next()
	w.gone = true
}

type goneWriter struct {
	gin.ResponseWriter
	gone bool
}

// Write writes, until the writer is gone.
func (w *goneWriter) Write(p []byte) (int, error) {
	if w.gone {
		panic("a write to a writer that is gone")
	}
	return w.ResponseWriter.Write(p)
}

package ginlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// byKey is a key that the client chooses.
var byKey = ginlock.IdempotencyKey()

func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	idempotent := func(opts ...core.Option) func() {
		return func() { ginlock.Idempotent(locks, byKey, opts...) }
	}
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":    {func() { ginlock.Idempotent(nil, byKey) }, "locker"},
		"zero Key":      {func() { ginlock.Idempotent(locks, ginlock.Key{}) }, "needs a key"},
		"nil option":    {idempotent(nil), "option is nil"},
		"bad setting":   {idempotent(core.WithRetention(1)), "WithRetention"},
		"All":           {func() { ginlock.Idempotent(locks, core.All(byKey, literal)) }, "Idempotent has one key"},
		"FailOpen":      {idempotent(core.WithFailOpen(true)), "WithFailOpen"},
		"a cookie":      {idempotent(core.WithReplayedHeaders("Set-Cookie")), "Set-Cookie"},
		"of Idempotent": {func() { ginlock.Middleware(locks, byKey, core.WithStored(func(int) bool { return true })) }, "WithStored has no effect on Middleware"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

// An answer of a middleware outside is not stored. The outcome is unknown, unless the
// handler has set a status that frees the key or the application knows the error.
func TestAnswerOfOuterMiddlewareIsNotStored(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	locks := locktest.New(t).Locker
	runs := 0
	engine.Use(func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 && !c.Writer.Written() {
			c.JSON(http.StatusUnprocessableEntity, c.Errors.Last().Error())
		}
	})
	fail := func(status int, d core.Ending) gin.HandlerFunc {
		return func(c *gin.Context) {
			runs++
			attempt, _ := core.AttemptFromContext(c)
			attempt.Decide(d)
			_ = c.Error(errFunds)
			if status != 0 {
				c.Status(status)
			}
		}
	}
	idempotent := ginlock.Idempotent(locks, byKey)
	known := ginlock.Idempotent(locks, byKey, core.WithUnknown(func(f core.Failure) bool { return !errors.Is(f.Err, errFunds) }))
	engine.POST("/no-status", idempotent, fail(0, core.EndUndecided))
	engine.POST("/402", idempotent, fail(http.StatusPaymentRequired, core.EndUndecided))
	engine.POST("/500", idempotent, fail(http.StatusInternalServerError, core.EndUndecided))
	engine.POST("/known", known, fail(0, core.EndUndecided))
	engine.POST("/free", ginlock.Idempotent(locks, byKey, core.WithFreeOnFailure()), fail(0, core.EndUndecided))
	engine.POST("/drop", idempotent, fail(0, core.EndAbort))
	engine.POST("/store", idempotent, fail(0, core.EndCommit))
	for path, code := range map[string]string{
		"/no-status": "outcome_unknown", "/500": "outcome_unknown", "/store": "completed_unreplayable",
		"/402": "", "/known": "", "/free": "", "/drop": "",
	} {
		runs = 0
		if w := adaptertest.Pay(t, engine, path, "outside", ""); w.Code != http.StatusUnprocessableEntity || runs != 1 {
			t.Errorf("%s: %d %s after %d runs", path, w.Code, w.Body, runs)
		}
		w := adaptertest.Pay(t, engine, path, "outside", "")
		if code != "" {
			adaptertest.WantProblem(t, w, http.StatusConflict, code)
		}
		if want := map[bool]int{true: 2, false: 1}[code == ""]; runs != want {
			t.Errorf("%s: %d runs, want %d", path, runs, want)
		}
	}
}

// An answer without c.Writer cannot be replayed.
func TestAnswerPastTheWriter(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	locks := locktest.New(t).Locker
	engine.GET("/elsewhere", ok)
	engine.POST("/", ginlock.Idempotent(locks, byKey), func(c *gin.Context) {
		c.Set("engine", engine)
		c.Request.URL.Path, c.Request.Method = "/elsewhere", http.MethodGet
		hand(c)
	})
	if w := adaptertest.Pay(t, engine, "/", "past", ""); w.Body.String() != "done" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	adaptertest.WantProblem(t, adaptertest.Pay(t, engine, "/", "past", ""), http.StatusConflict, "completed_unreplayable")
}

// An unknown route gets 404 as without Idempotent, and nothing is stored.
func TestIdempotentUnknownRoute(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.Use(ginlock.Idempotent(locktest.New(t).Locker, byKey))
	for range 2 {
		w := adaptertest.Pay(t, engine, "/unknown", "route", "")
		if w.Code != http.StatusNotFound || w.Body.String() != "404 page not found" || w.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
}

// The fingerprint covers a body that a middleware has bound, and the handler can bind
// it again.
func TestFingerprintCoversABoundBody(t *testing.T) {
	t.Parallel()
	type payment struct{ Amount int }
	engine := gin.New()
	engine.POST("/", func(c *gin.Context) {
		if err := c.ShouldBindBodyWithJSON(&payment{}); err != nil {
			t.Error(err)
		}
	}, ginlock.Idempotent(locktest.New(t).Locker, byKey, core.WithMaxBody(20)), func(c *gin.Context) {
		var p payment
		err := c.ShouldBindBodyWithJSON(&p)
		c.String(http.StatusCreated, "%d %v", p.Amount, err)
	})
	for range 2 {
		if w := adaptertest.Pay(t, engine, "/", "bound", `{"Amount":7}`); w.Body.String() != "7 <nil>" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	adaptertest.WantProblem(t, adaptertest.Pay(t, engine, "/", "bound", `{"Amount":8}`), http.StatusUnprocessableEntity, "mismatch")
	adaptertest.WantProblem(t, adaptertest.Pay(t, engine, "/", "long", `{"Amount":7, "More":8}`), http.StatusRequestEntityTooLarge, "body_too_large")
}

func TestConsumedBodyIsNotAnEmptyBody(t *testing.T) {
	t.Parallel()
	locks, engine := locktest.New(t).Locker, gin.New()
	take := func(c *gin.Context) { _ = c.ShouldBindJSON(&struct{}{}) }
	keepNone := func(c *gin.Context) { _ = c.ShouldBindBodyWithJSON(&struct{}{}) }
	engine.POST("/", take, ginlock.Idempotent(locks, byKey), mustNotRun(t))
	engine.POST("/field", take, keepNone, ginlock.Middleware(locks, ginlock.JSONField("Amount")), mustNotRun(t))
	for path, code := range map[string]string{"/": "internal", "/field": "key_error"} {
		adaptertest.WantProblem(t, adaptertest.Pay(t, engine, path, "taken", `{"Amount":7}`), http.StatusInternalServerError, code)
	}
}

// Hijack fails after a part of the body was written.
func TestHijackAfterTheBody(t *testing.T) {
	t.Parallel()
	engine := gin.New()
	engine.POST("/", ginlock.Idempotent(locktest.New(t).Locker, byKey), func(c *gin.Context) {
		c.String(http.StatusOK, "paid")
		if _, _, err := c.Writer.Hijack(); err == nil {
			t.Error("the connection was taken over")
		}
		if c.Writer.Pusher() != nil {
			t.Error("there is something to push with")
		}
	})
	for range 2 {
		if w := adaptertest.Pay(t, engine, "/", "hijack", ""); w.Code != http.StatusOK || w.Body.String() != "paid" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

func TestAttemptFromContextWithoutAttempt(t *testing.T) {
	t.Parallel()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	if attempt, within := core.AttemptFromContext(c); within || attempt != nil {
		t.Errorf("%v", attempt)
	}
}

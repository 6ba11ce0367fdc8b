package ginlock_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A key may answer by itself, as Gin's own methods do. Nothing is added to
// its answer, and the error handler is not called.
func TestKeyAnswers(t *testing.T) {
	t.Parallel()
	noUser := errors.New("no user")
	for name, test := range map[string]struct {
		key    func(*gin.Context) (string, error)
		status int
		body   string
	}{
		"AbortWithError": {func(c *gin.Context) (string, error) {
			return "", c.AbortWithError(http.StatusUnauthorized, noUser)
		}, 401, ""},
		"AbortWithStatusJSON": {func(c *gin.Context) (string, error) {
			c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "log in"})
			return "", noUser
		}, 401, `{"error":"log in"}`},
		"AbortWithStatusJSON, no key": {func(c *gin.Context) (string, error) {
			c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"error": "log in"})
			return "", nil
		}, 401, `{"error":"log in"}`},
		"BindJSON": {func(c *gin.Context) (string, error) {
			var p payment
			err := c.BindJSON(&p)
			return p.Account, err
		}, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gin.New()
			r.Use(func(c *gin.Context) {
				c.Next()
				if refusal, known := core.RefusalOf(c.Errors.Last()); !known || !c.IsAborted() {
					t.Errorf("refusal %+v, aborted %v", refusal, c.IsAborted())
				}
			})
			locks := adaptertest.UnusedLocker(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned {
					t.Error(e.Err)
				}
			}))
			lock := ginlock.Middleware(locks, core.KeyOf(test.key))
			handled := ginlock.Middleware(locks, core.KeyOf(test.key),
				ginlock.WithErrorHandler(func(c *gin.Context, _ error) { c.String(http.StatusTeapot, "mine") }))
			r.POST("/default", lock, mustNotRun(t))
			r.POST("/handler", handled, mustNotRun(t))
			for _, path := range []string{"/default", "/handler"} {
				if w := call(t, r, http.MethodPost, path); w.Code != test.status || w.Body.String() != test.body {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}

// A status alone is no answer: the middleware sends another status.
func TestKeySetsAStatus(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), core.KeyOf(func(c *gin.Context) (string, error) {
		c.Status(http.StatusForbidden)
		return "", core.ErrNoKey
	})), mustNotRun(t))
	w := call(t, r, http.MethodGet, "/")
	adaptertest.WantProblem(t, w, http.StatusBadRequest, "no_key")
}

// core.RefusalOf accepts the last error of c.Errors, even if the key has added an
// error of its own.
func TestLastErrorOfContextHasTheOutcome(t *testing.T) {
	t.Parallel()
	noUser := errors.New("no user")
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		last := c.Errors.Last()
		refusal, known := core.RefusalOf(last)
		if !known || refusal.Code != "key_error" || !errors.Is(last, noUser) || !last.IsType(gin.ErrorTypePrivate) {
			t.Errorf("last %v, refusal %+v", last, refusal)
		}
		if len(c.Errors) != 2 || c.Errors[0].Err != noUser { //nolint:errorlint // the same error
			t.Errorf("errors %v", c.Errors)
		}
	})
	r.GET("/", ginlock.Middleware(adaptertest.UnusedLocker(t), core.KeyOf(func(c *gin.Context) (string, error) {
		return "", c.Error(noUser)
	}), ginlock.WithErrorHandler(func(c *gin.Context, err error) {
		if c.Errors.Last().Err != err { //nolint:errorlint // the same error
			t.Errorf("the last error is %v, not %v", c.Errors.Last(), err)
		}
	})), mustNotRun(t))
	adaptertest.WantProblem(t, call(t, r, http.MethodGet, "/"), http.StatusInternalServerError, "key_error")
}

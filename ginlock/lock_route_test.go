package ginlock_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A middleware can be used for a route, a group and the engine. Used for all three, a
// request takes one lock.
func TestRouteGroupAndEngine(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(r *gin.Engine, lock, h gin.HandlerFunc){
		"route":  func(r *gin.Engine, lock, h gin.HandlerFunc) { r.POST("/accounts/:id", lock, h) },
		"group":  func(r *gin.Engine, lock, h gin.HandlerFunc) { r.Group("/accounts/:id", lock).POST("", h) },
		"engine": func(r *gin.Engine, lock, h gin.HandlerFunc) { r.Use(lock); r.POST("/accounts/:id", h) },
		"all": func(r *gin.Engine, lock, h gin.HandlerFunc) {
			r.Use(lock)
			r.Group("/accounts", lock).POST("/:id", lock, h, func(c *gin.Context) {
				if c.Request.Context().Err() != nil {
					t.Error("an inner middleware has ended the lease")
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			r := gin.New()
			register(r, ginlock.Middleware(locks.Locker, ginlock.Param("id").Named("account")), func(c *gin.Context) {
				key := "account:" + c.Param("id")
				if lease, _ := core.LeaseFromContext(c); lease.Key() != key {
					t.Errorf("key %q", lease.Key())
				}
				if _, err := locks.TryLock(t.Context(), key); !errors.Is(err, core.ErrBusy) {
					t.Errorf("the key is free: %v", err)
				}
				ok(c)
			})
			if w := call(t, r, http.MethodPost, "/accounts/42"); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
			release := locks.Hold("account:42")
			defer release()
			for target, want := range map[string]int{"/accounts/42": 409, "/accounts/43": 200} {
				if w := call(t, r, http.MethodPost, target); w.Code != want {
					t.Errorf("%s, with account 42 held: status %d", target, w.Code)
				}
			}
		})
	}
}

// A request that is routed again keeps its lock, which is no mistake.
func TestHandleContext(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned {
			t.Error(e.Err)
		}
	}))
	r := gin.New()
	lock := ginlock.Middleware(locks.Locker, literal)
	r.GET("/old", lock, func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		r.HandleContext(c)
	})
	r.GET("/new", lock, func(c *gin.Context) {
		if adaptertest.IsFree(t, locks.Locker) {
			t.Error("the key is free")
		}
		ok(c)
	})
	if w := call(t, r, http.MethodGet, "/old"); w.Code != http.StatusOK || !adaptertest.IsFree(t, locks.Locker) {
		t.Errorf("status %d, held %v", w.Code, !adaptertest.IsFree(t, locks.Locker))
	}
}

// With a lock on the whole engine that is limited to known routes, unknown routes
// keep their 404.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	isRoute := func(c *gin.Context) bool { return c.FullPath() != "" }
	id := ginlock.Param("id")
	for name, test := range map[string]struct {
		key     ginlock.Key
		noRoute []gin.HandlerFunc
		unknown int
		method  int
		body    string
	}{
		"all of the engine": {id, nil, 400, 400, `"code":"no_key"`},
		"routes":            {id.When(isRoute), nil, 404, 405, "404 page not found"},
		"routes, and a handler for the rest": {
			id.When(isRoute),
			[]gin.HandlerFunc{func(c *gin.Context) { c.String(http.StatusNotFound, "nothing here") }},
			404, 405, "nothing here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			release := locks.Hold("42")
			defer release()
			r := gin.New()
			r.HandleMethodNotAllowed = true
			r.Use(ginlock.Middleware(locks.Locker, test.key))
			if test.noRoute != nil {
				r.NoRoute(test.noRoute...)
			}
			r.GET("/accounts/:id", ok)
			w := call(t, r, http.MethodGet, "/unknown")
			if w.Code != test.unknown || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("unknown: %d %s", w.Code, w.Body)
			}
			if w := call(t, r, http.MethodPost, "/accounts/42"); w.Code != test.method {
				t.Errorf("another method: status %d", w.Code)
			}
			if w := call(t, r, http.MethodGet, "/accounts/42"); w.Code != http.StatusConflict {
				t.Errorf("locked route: status %d", w.Code)
			}
			if w := call(t, r, http.MethodGet, "/accounts/43"); w.Code != http.StatusOK {
				t.Errorf("free route: status %d", w.Code)
			}
		})
	}
}

// A lock can be put on the handlers for unknown routes.
func TestNoRouteUnderALock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	release := locks.Hold(theKey)
	defer release()
	r := gin.New()
	r.NoRoute(ginlock.Middleware(locks.Locker, literal), mustNotRun(t))
	if w := call(t, r, http.MethodGet, "/unknown"); w.Code != http.StatusConflict {
		t.Errorf("status %d", w.Code)
	}
}

// The middlewares of a group do not run for routes that it does not have.
func TestUnknownRouteOfAGroup(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.Group("/accounts", ginlock.Middleware(adaptertest.UnusedLocker(t), ginlock.Param("id"))).GET("/:id", ok)
	if w := call(t, r, http.MethodGet, "/accounts/42/unknown"); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

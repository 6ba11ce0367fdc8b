package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
)

// The handlers find the lease in the request's context, and in c itself, which ends with the lease
// only with ContextWithFallback.
func TestContextWithFallback(t *testing.T) {
	t.Parallel()
	for name, fallback := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			r := gin.New()
			r.ContextWithFallback = fallback
			r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
				lease, found := core.LeaseFromContext(c)
				if !found || lease.Key() != theKey {
					t.Errorf("lease of %q, %v", lease.Key(), found)
				}
				if same, _ := core.LeaseFromContext(c.Request.Context()); same != lease {
					t.Error("the request's context has another lease")
				}
				if (c.Done() != nil) != fallback {
					t.Errorf("c as a context ends: %v", c.Done() != nil)
				}
				if work, err := core.Detach(c); work != nil || !errors.Is(err, core.ErrHiddenLease) {
					t.Errorf("Detach: %v, %v", work, err)
				}
				if work, err := core.Detach(context.WithoutCancel(c)); work != nil || !errors.Is(err, core.ErrHiddenLease) {
					t.Errorf("Detach of a context that is derived from c: %v, %v", work, err)
				}
				// The nested call is recognised by the context.
				nested, err := locks.TryLock(c.Request.Context(), theKey)
				if err != nil || nested.Token() != lease.Token() {
					t.Errorf("nested: %v", err)
				}
				ok(c)
			})
			if w := call(t, r, http.MethodGet, "/"); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		})
	}
}

// A copy of c keeps the lease, and its context ends with the lease.
func TestCopyOfContextKeepsTheLease(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	var kept *gin.Context
	r := gin.New()
	r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		kept = c.Copy()
		if lease, _ := core.LeaseFromContext(kept); lease.Key() != theKey || kept.Request.Context().Err() != nil {
			t.Errorf("key %q, %v", lease.Key(), kept.Request.Context().Err())
		}
	})
	call(t, r, http.MethodGet, "/")
	if err := kept.Request.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("after the handler: %v", err)
	}
}

// After the handlers have ended in any way, c.Request is the request from before the
// lock, even if a handler has replaced it.
func TestRequestIsRestored(t *testing.T) {
	t.Parallel()
	type ctxKey struct{}
	for name, end := range map[string]gin.HandlerFunc{
		"returns": ok,
		"panics":  func(*gin.Context) { panic("crash") },
		"replaces it": func(c *gin.Context) {
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), ctxKey{}, 1))
		},
		"aborts": func(c *gin.Context) { c.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			r := gin.New()
			var inner *http.Request
			r.Use(func(c *gin.Context) {
				before := c.Request
				defer func() {
					_ = recover()
					if c.Request != before || c.Request.Context().Err() != nil {
						t.Errorf("another request, or its context has ended: %v", c.Request.Context().Err())
					}
					if _, found := core.LeaseFromContext(c); found {
						t.Error("there is a lease")
					}
					if inner.Context().Err() == nil {
						t.Error("the handler's context goes on after its lease")
					}
				}()
				c.Next()
			})
			r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
				inner = c.Request
				end(c)
			})
			call(t, r, http.MethodGet, "/")
		})
	}
}

// A context without a request, as tests of handlers make it, has no lease.
func TestFromContextWithoutRequest(t *testing.T) {
	t.Parallel()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	if lease, found := core.LeaseFromContext(c); lease != nil || found {
		t.Error("there is a lease")
	}
}

func TestOuterMiddlewareSeesTheParsedForm(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		if got := c.Request.PostFormValue("amount"); got != "3" {
			t.Errorf("outside the lock the amount is %q", got)
		}
	})
	r.POST("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		c.String(http.StatusOK, c.Request.FormValue("amount"))
	})
	if status, text := send(t, newServer(t, r), http.MethodPost, "/", gin.MIMEPOSTForm, "amount=3"); status != http.StatusOK || text != "3" {
		t.Errorf("%d %s", status, text)
	}
}

// A nested lock with c as its context would wait for its own request: it is refused, and the
// error says what to write. It is never nested, since Gin uses c again.
func TestNestedLockWithGinContextIsRefused(t *testing.T) {
	t.Parallel()
	type ctxKey struct{}
	nothing := func(context.Context) error { return nil }
	for name, use := range map[string]func(locks *core.Locker, c *gin.Context) error{
		"Do":    func(locks *core.Locker, c *gin.Context) error { return locks.Do(c, theKey, nothing) },
		"DoAll": func(locks *core.Locker, c *gin.Context) error { return locks.DoAll(c, []string{"a", theKey}, nothing) },
		"Lock": func(locks *core.Locker, c *gin.Context) error {
			_, err := locks.Lock(c, theKey)
			return err
		},
		"TryLock": func(locks *core.Locker, c *gin.Context) error {
			_, err := locks.TryLock(c, theKey)
			return err
		},
		"a derived context": func(locks *core.Locker, c *gin.Context) error {
			return locks.Do(context.WithValue(c, ctxKey{}, 1), theKey, nothing)
		},
		"under another lock": func(locks *core.Locker, c *gin.Context) error {
			return locks.Do(c, "other", func(ctx context.Context) error { return locks.Do(ctx, theKey, nothing) })
		},
		"a copy": func(locks *core.Locker, c *gin.Context) error { return locks.Do(c.Copy(), theKey, nothing) },
	} {
		for _, fallback := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var refused atomic.Int32
				locks := locktest.New(t, core.WithObserver(func(e core.Event) {
					if e.Kind == core.Refused && errors.Is(e.Err, core.ErrHiddenLease) && e.Key.Raw() == theKey {
						refused.Add(1)
					}
				}))
				r := gin.New()
				r.ContextWithFallback = fallback
				r.GET("/", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
					err := use(locks.With(core.WithWait(time.Second)), c)
					switch {
					case fallback && err != nil:
						t.Errorf("with ContextWithFallback: %v", err)
					case !fallback && (!errors.Is(err, core.ErrHiddenLease) || !strings.Contains(err.Error(), "c.Request.Context()")):
						t.Errorf("without ContextWithFallback: %v", err)
					case !fallback && refused.Load() != 1:
						t.Errorf("%d events", refused.Load())
					}
					if lease, _ := core.LeaseFromContext(c); c.Request.Context().Err() != nil || lease.Key() != theKey {
						t.Error("the request has lost its lease")
					}
					ok(c)
				})
				if w := call(t, r, http.MethodGet, "/"); w.Code != http.StatusOK {
					t.Errorf("status %d", w.Code)
				}
			})
		}
	}
}

// The other uses of c as a context work as before.
func TestLockWithGinContext(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	other := locktest.New(t)
	r := gin.New()
	run := func(c *gin.Context, locks *core.Locker, key string) {
		ran := false
		if err := locks.Do(c, key, func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("key %q: ran %v, %v", key, ran, err)
		}
	}
	r.GET("/locked", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) {
		run(c, locks.Locker, "another key")
		run(c, other.Locker, theKey) // of another Redis
	})
	r.GET("/free", func(c *gin.Context) { run(c, locks.Locker, theKey) })
	r.GET("/idempotent", ginlock.Idempotent(locks.Locker, literal, core.WithMethods(http.MethodDelete)), func(c *gin.Context) {
		run(c, locks.Locker, theKey)
	})
	for _, path := range []string{"/locked", "/free", "/idempotent"} {
		call(t, r, http.MethodGet, path)
	}
	var kept *gin.Context
	r.GET("/kept", ginlock.Middleware(locks.Locker, literal), func(c *gin.Context) { kept = c.Copy() })
	call(t, r, http.MethodGet, "/kept")
	run(kept, locks.Locker, theKey) // its request has ended
	empty, _ := gin.CreateTestContext(httptest.NewRecorder())
	run(empty, locks.Locker, theKey) // has no request
}

// An attempt of the request is hidden too.
func TestNestedAttemptWithGinContextIsRefused(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	locks := locktest.New(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Refused && e.Idempotent {
			refused.Add(1)
		}
	}))
	r := gin.New()
	r.POST("/", ginlock.Idempotent(locks.Locker, literal), func(c *gin.Context) {
		attempt, _ := core.AttemptFromContext(c)
		if _, err := locks.Begin(c, attempt.Key(), nil); !errors.Is(err, core.ErrHiddenLease) || refused.Load() != 1 {
			t.Errorf("Begin: %v, %d events", err, refused.Load())
		}
		ok(c)
	})
	if w := call(t, r, http.MethodPost, "/"); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

package ginlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// recovery is gin.Recovery without a log.
func recovery() gin.HandlerFunc { return gin.RecoveryWithWriter(nil) }

// Recovery before the lock and behind it both answer a panic, and the lock is
// free afterwards.
func TestRecoveryOnEitherSideAnswersAPanic(t *testing.T) {
	t.Parallel()
	pass := func(c *gin.Context) { c.Next() }
	for name, test := range map[string]struct {
		outer, inner gin.HandlerFunc
		panics       any
		status       int
	}{
		"before the lock":        {recovery(), pass, "crash", 500},
		"behind the lock":        {pass, recovery(), "crash", 500},
		"both":                   {recovery(), recovery(), errors.New("crash"), 500},
		"abort, before the lock": {recovery(), pass, http.ErrAbortHandler, 200}, // Gin's own answer to it
		"abort, behind the lock": {pass, recovery(), http.ErrAbortHandler, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			r := gin.New()
			r.GET("/", test.outer, ginlock.Middleware(locks.Locker, literal), test.inner, func(*gin.Context) {
				if adaptertest.IsFree(t, locks.Locker) {
					t.Error("the handler runs, and the key is free")
				}
				panic(test.panics)
			})
			if w := call(t, r, http.MethodGet, "/"); w.Code != test.status || !adaptertest.IsFree(t, locks.Locker) {
				t.Errorf("status %d, held %v", w.Code, !adaptertest.IsFree(t, locks.Locker))
			}
		})
	}
}

// Without recovery a panic passes the middleware unchanged, and so does Goexit.
func TestPanicPassesUnchangedWithoutRecovery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func()
		panics any
	}{
		"panic":  {func() { panic("crash") }, "crash"},
		"abort":  {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"Goexit": {runtime.Goexit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			r := gin.New()
			r.GET("/", ginlock.Middleware(locks.Locker, literal), func(*gin.Context) { test.end() })
			caught := make(chan any, 1)
			go func() {
				defer func() { caught <- recover() }()
				r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			}()
			if got := suite.Receive(t, "the handler ends", caught); got != test.panics || !adaptertest.IsFree(t, locks.Locker) {
				t.Errorf("panic %v, held %v", got, !adaptertest.IsFree(t, locks.Locker))
			}
		})
	}
}

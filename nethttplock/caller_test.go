package nethttplock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return nethttplock.Middleware(locks, literal)(closing) },
		"Idempotent": func(locks *core.Locker) http.Handler { return nethttplock.Idempotent(locks, literal)(closing) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			h := build(locks.Locker)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), closeKey{}, func() {
				err := locks.Close(ended)
				if err == nil || !strings.Contains(err.Error(), ".TestCallerIsTheCodeThatMadeTheMiddleware.func") {
					t.Errorf("close: %v", err)
				}
			}), http.MethodPost, "/", nil)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
		})
	}
}

// closeKey is the key of a function that closes the Locker during a request.
type closeKey struct{}

// closing closes the Locker during the request.
var closing = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { r.Context().Value(closeKey{}).(func())() })

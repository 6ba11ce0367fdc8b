package nethttplock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// http.TimeoutHandler does not wait for its handler. Around the lock, the lock is
// held until the handler returns; inside, the lock ends too early. TimeoutHandler
// also returns when the request's context ends; the test ends it in the handler.
func TestTimeoutHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stack         func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler
		heldMeanwhile bool
	}{
		"around the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return http.TimeoutHandler(lock(h), time.Minute, "")
		}, true},
		"inside the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return lock(http.TimeoutHandler(h, time.Minute, ""))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			end, ended := make(chan struct{}), make(chan struct{})
			stack := test.stack(nethttplock.Middleware(locks, literal), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				defer close(ended)
				leave()
				<-end
			}))
			w := httptest.NewRecorder()
			stack.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("status %d", w.Code)
			}
			if ctx.Err() == nil {
				t.Fatal("the handler has not run")
			}
			if adaptertest.IsHeld(t, rdb) != test.heldMeanwhile {
				t.Errorf("while the handler runs, the key is held: %v", !test.heldMeanwhile)
			}
			close(end)
			suite.AwaitClosed(t, "the handler ends", ended)
			suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
		})
	}
}

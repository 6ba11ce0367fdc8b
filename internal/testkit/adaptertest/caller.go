package adaptertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// closeKey is the key of a function that closes the Locker during a request.
type closeKey struct{}

// CloseLocker closes the Locker during a request of CheckCaller.
func CloseLocker(r *http.Request) {
	if closeNow, ok := r.Context().Value(closeKey{}).(func()); ok {
		closeNow()
	}
}

// CheckCaller fails the test unless Close names the code that took a lease: caller is a part
// of the name of that function. The handler has a middleware of the Locker, which records
// callers (core.WithCaller), and calls CloseLocker behind it.
func CheckCaller(t *testing.T, locks *core.Locker, handler http.Handler, caller string) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	closed := false
	ctx := context.WithValue(t.Context(), closeKey{}, func() {
		closed = true
		if err := locks.Close(ended); err == nil || !strings.Contains(err.Error(), caller) {
			t.Errorf("close: %v", err)
		}
	})
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
	if !closed {
		t.Error("the handler has not run")
	}
}

// Package adaptertest holds helpers that the tests of several adapters use. Cases that
// all adapters have in common are in tests/conformance.
package adaptertest

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
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

// ForeignOption returns an option of an adapter that does not exist.
func ForeignOption() core.Option {
	own := bridge.OwnOption{Adapter: "otherlock", Option: "WithColor"}
	return bridge.NewOption(own, bridge.All, func(any) any { return 1 }).(core.Option) //nolint:forcetypeassert // see bridge
}

// ForeignOptionText is a part of the panic of an adapter that gets a ForeignOption.
const ForeignOptionText = "otherlock.WithColor is an option of another adapter"

// WantPanic fails the test unless a registration panics with an error of reqlock that
// contains a text.
func WantPanic(tb testing.TB, register func(), want string) {
	tb.Helper()
	text := PanicText(register)
	if !strings.HasPrefix(text, "reqlock: ") || !strings.Contains(text, want) {
		tb.Errorf("panic %q does not contain %q", text, want)
	}
}

// PanicText returns the text of the panic of a function, or "".
func PanicText(f func()) (text string) {
	defer func() {
		switch caught := recover().(type) {
		case string:
			text = caught
		case error:
			text = caught.Error()
		}
	}()
	f()
	return ""
}

// Pay sends a POST request with an Idempotency-Key to a handler.
func Pay(tb testing.TB, h http.Handler, path, key, body string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// WantProblem fails the test unless an answer is the problem document of a refusal,
// without Key.
func WantProblem(tb testing.TB, w *httptest.ResponseRecorder, status int, code string) {
	tb.Helper()
	var problem struct {
		Status int
		Code   string
	}
	err := json.Unmarshal(w.Body.Bytes(), &problem)
	header := w.Header()
	if err != nil || w.Code != status || problem.Status != status || problem.Code != code ||
		header.Get("Content-Type") != "application/problem+json" || header.Get("Cache-Control") != "no-store" {
		tb.Errorf("%d %v %s, want %d %s (%v)", w.Code, header, w.Body, status, code, err)
	}
	if strings.Contains(w.Body.String(), Key) {
		tb.Errorf("the answer contains the key: %s", w.Body)
	}
}

// WantTypedLoss fails the test unless an answer is that of a lost lease of a Locker with
// core.WithProblemType("/errors/").
func WantTypedLoss(tb testing.TB, w *httptest.ResponseRecorder) {
	tb.Helper()
	if !strings.HasPrefix(w.Body.String(), `{"type":"/errors/lease_lost","title":"Lease lost","status":500,`) {
		tb.Errorf("%d %s", w.Code, w.Body)
	}
}

// WantLoss fails the test unless an answer is the problem that a handler's client gets if the
// handler has lost its lease. "" is an answer of the handler's own.
func WantLoss(tb testing.TB, w *httptest.ResponseRecorder, code string) {
	tb.Helper()
	statuses := map[string]int{
		"lease_lost": http.StatusInternalServerError, "outcome_unknown": http.StatusConflict, "unavailable": http.StatusServiceUnavailable,
		"completed_unreplayable": http.StatusConflict,
	}
	if code != "" {
		WantProblem(tb, w, statuses[code], code)
	}
	mayRetry, isProblem := w.Header().Get("Retry-After") != "", strings.Contains(w.Body.String(), `"code"`)
	if mayRetry != (code == "unavailable") || isProblem != (code != "") || w.Header().Get("Location") != "" {
		tb.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// mostAllocations is how many allocations an adapter may add to those of the bare handler and of the
// lock alone.
const mostAllocations = 10

// CheckAllocations fails the test if a handler under a lock of the Locker allocates too much. locked is
// the handler behind the adapter, and serve runs a handler. No test may run in parallel.
func CheckAllocations[H any](t *testing.T, locks *core.Locker, handler, locked H, serve func(H) error) {
	t.Helper()
	of := func(h H) float64 {
		return least(func() {
			if err := serve(h); err != nil {
				t.Error(err)
			}
		})
	}
	bare, lock := of(handler), least(func() { IsFree(t, locks) })
	if own := of(locked) - bare - lock; own > mostAllocations {
		t.Errorf("%.2f allocations over the bare handler (%.2f) and the lock alone (%.2f), want at most %d", own, bare, lock, mostAllocations)
	}
}

// least returns the allocations of a function, on average. Other goroutines only add to them.
func least(run func()) float64 {
	const runs = 100
	n := math.Inf(1)
	for range 5 {
		n = min(n, testing.AllocsPerRun(1, func() { // which rounds down
			for range runs {
				run()
			}
		}))
	}
	return n / runs
}

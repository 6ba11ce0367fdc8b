package adaptertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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

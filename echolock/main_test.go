package echolock_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests to which a test gives no other.
const theKey = "account-secret"

// literal locks theKey.
var literal = echolock.Literal(theKey)

// ok is a handler that runs and says no more.
func ok(c echo.Context) error { return c.NoContent(http.StatusNoContent) }

// newEcho returns an application that keeps its log to itself.
func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

// newRequest returns a request as the server sees it.
func newRequest(t *testing.T, method, target, body string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
}

// serve gives a request to the application and returns the answer.
func serve(e *echo.Echo, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// isFree reports whether nobody holds theKey.
func isFree(t *testing.T, locks *locktest.Locks) bool {
	t.Helper()
	lease, err := locks.TryLock(t.Context(), theKey)
	if err == nil {
		err = lease.Release(t.Context())
	} else if errors.Is(err, core.ErrBusy) {
		return false
	}
	if err != nil {
		t.Error(err)
	}
	return true
}

// checkProblem fails the test if an answer is not the problem document.
func checkProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var problem struct {
		Status int
		Code   string
	}
	err := json.Unmarshal(w.Body.Bytes(), &problem)
	if err != nil || w.Code != status || problem.Status != status || problem.Code != code {
		t.Errorf("%d %s, want %d %s (%v)", w.Code, w.Body, status, code, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", w.Header())
	}
	if strings.Contains(w.Body.String(), theKey) {
		t.Errorf("the answer tells the key: %s", w.Body)
	}
}

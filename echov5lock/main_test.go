package echov5lock_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

// literal locks theKey.
var literal = echov5lock.Literal(theKey)

// ok is a handler that answers without a body.
func ok(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }

// newEcho returns an application without a log.
func newEcho() *echo.Echo {
	return echo.NewWithConfig(echo.Config{Logger: slog.New(slog.DiscardHandler)})
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

// byKey is a key that the client chooses.
var byKey = echov5lock.IdempotencyKey()

// pay sends a payment with the key to an application.
func pay(t *testing.T, e *echo.Echo, path, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	return adaptertest.Pay(t, e, path, key, body)
}

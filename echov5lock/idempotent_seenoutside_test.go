package echov5lock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
)

// answers are what handlers do with c.
var answers = map[string]echo.HandlerFunc{
	"nothing": func(*echo.Context) error { return nil },
	"a text":  func(c *echo.Context) error { return c.String(http.StatusCreated, "paid") },
	"JSON":    func(c *echo.Context) error { return c.JSON(http.StatusOK, map[string]bool{"paid": true}) },
	"two answers": func(c *echo.Context) error {
		_ = c.NoContent(http.StatusOK)
		return c.NoContent(http.StatusTeapot)
	},
	"a redirection": func(c *echo.Context) error { return c.Redirect(http.StatusSeeOther, "/there") },
	"headers":       func(c *echo.Context) error { c.Response().Header().Set("Location", "/1"); return nil },
	"a body":        func(c *echo.Context) error { _, err := c.Response().Write([]byte("paid")); return err },
	"pieces": func(c *echo.Context) error {
		_, err := c.Response().Write([]byte("paid"))
		return errors.Join(err, http.NewResponseController(c.Response()).Flush())
	},
	"an HTTPError":       func(*echo.Context) error { return echo.NewHTTPError(http.StatusPaymentRequired, "no funds") },
	"an error":           func(*echo.Context) error { return errors.New("no funds") },
	"an error, answered": func(c *echo.Context) error { _ = c.String(http.StatusOK, "paid"); return errors.New("too late") },
}

// A middleware outside and the client see the same answer as without Idempotent.
// Exception: the error that a handler returns.
func TestOuterMiddlewareSeesTheSameAnswer(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, handler := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			idempotent := echov5lock.Idempotent(locks, echov5lock.Literal(name))
			if got, want := seenOutside(t, handler, idempotent), seenOutside(t, handler); got != want {
				t.Errorf("%s\nwithout Idempotent %s", got, want)
			}
		})
	}
}

// seenOutside serves a handler behind middlewares, and returns what those
// outside and the client see.
func seenOutside(t *testing.T, handler echo.HandlerFunc, middlewares ...echo.MiddlewareFunc) string {
	t.Helper()
	seen := make(chan string, 1)
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			w, r := c.Response(), c.Request()
			response, _ := echo.UnwrapResponse(w)
			before, after := 0, 0
			response.Before(func() { before++ })
			response.After(func() { after++ })
			response.Header().Set("X-Outer", "1")
			response.Header().Set("Date", "today")
			if err := next(c); err != nil {
				e.HTTPErrorHandler(c, err)
			}
			seen <- fmt.Sprint(response.Status, response.Size, response.Committed, response.Header(), before, after,
				c.Response() == w, c.Request() == r)
			return nil
		}
	})
	e.POST("/", handler, middlewares...)
	server := httptest.NewServer(e)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return fmt.Sprint(<-seen, "; ", answer.StatusCode, answer.Header, string(body), err)
}

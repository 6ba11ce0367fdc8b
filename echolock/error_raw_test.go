package echolock_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
)

// An error handler may answer on the server's own writer or its connection. Nothing
// is added to that answer, whatever the error handler returns.
func TestErrorHandlerPastEcho(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	for name, test := range map[string]struct {
		answer func(c echo.Context) error
		status int
		body   string
	}{
		"the writer": {func(c echo.Context) error {
			http.Error(c.Response().Writer, "mine", http.StatusLocked)
			return nil
		}, 423, "mine\n"},
		"the writer, without a status": {func(c echo.Context) error {
			_, err := io.WriteString(c.Response().Writer, "mine")
			return err
		}, 400, "mine"},
		"the writer, flushed":   {func(c echo.Context) error { c.Response().Flush(); return nil }, 400, ""},
		"the writer, and fails": {func(c echo.Context) error { http.Error(c.Response().Writer, "mine", http.StatusLocked); return io.EOF }, 423, "mine\n"},
		"the connection":        {teapot, 418, "mine"},
		"the connection, and fails": {func(c echo.Context) error {
			_ = teapot(c)
			return io.EOF
		}, 418, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					before := c.Response().Writer
					err := next(c)
					if c.Response().Writer != before {
						t.Errorf("outside the writer is a %T", c.Response().Writer)
					}
					return err
				}
			})
			e.GET("/", ok, echolock.Middleware(locks.Locker, echolock.Header("X-No"),
				echolock.WithErrorHandler(func(c echo.Context, _ error) error { return test.answer(c) })))
			server := httptest.NewServer(e)
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			body, err := io.ReadAll(answer.Body)
			if answer.StatusCode != test.status || string(body) != test.body || err != nil {
				t.Errorf("%d %q, %v", answer.StatusCode, body, err)
			}
		})
	}
}

// teapot hijacks the connection and answers 418.
func teapot(c echo.Context) error {
	conn, _, err := c.Response().Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
	return err
}

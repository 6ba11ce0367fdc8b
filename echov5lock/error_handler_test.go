package echov5lock_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// noKey is the answer if the error handler does not answer.
const noKey = `{"type":"about:blank","title":"Bad Request","status":400,` +
	`"detail":"The request lacks the header \"X-Account\", by which it is locked.","code":"no_key"}` + "\n"

// An error handler may answer in each way in which handlers answer, also behind a writer that keeps
// the answer back. If it does not answer, the middleware does.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	own := func(c *echo.Context) http.ResponseWriter { // the server's own writer
		response, _ := echo.UnwrapResponse(c.Response())
		return response.ResponseWriter
	}
	for name, test := range map[string]struct {
		handle func(c *echo.Context, err error) error
		status int
		body   string
		fails  bool // the middlewares outside get an error
	}{
		"the default":         {echov5lock.WriteError, 400, noKey, true},
		"nothing":             {func(*echo.Context, error) error { return nil }, 400, noKey, true},
		"the error itself":    {func(_ *echo.Context, err error) error { return err }, 400, noKey, true},
		"a header only":       {func(c *echo.Context, _ error) error { c.Response().Header().Set("X-A", "1"); return nil }, 400, noKey, true},
		"an HTTPError":        {func(*echo.Context, error) error { return echo.NewHTTPError(http.StatusLocked, "Locked") }, 423, `{"message":"Locked"}` + "\n", true},
		"an error of its own": {func(*echo.Context, error) error { return mine }, 500, `{"message":"Internal Server Error"}` + "\n", true},
		"an HTTPError around it": {func(c *echo.Context, err error) error {
			return echov5lock.WriteError(c, echo.HTTPError{Code: 200}.Wrap(err))
		}, 400, noKey, true},
		"an answer":               {func(c *echo.Context, _ error) error { return c.String(http.StatusTeapot, "mine") }, 418, "mine", false},
		"an answer with an error": {func(c *echo.Context, err error) error { _ = c.String(http.StatusTeapot, "mine"); return err }, 418, "mine", true},
		"a success on purpose":    {func(c *echo.Context, _ error) error { return c.NoContent(http.StatusAccepted) }, 202, "", false},
		"a body without a status": {func(c *echo.Context, _ error) error { _, err := c.Response().Write([]byte("mine")); return err }, 400, "mine", false},
		"the path":                {func(c *echo.Context, _ error) error { return c.String(http.StatusTeapot, c.Path()) }, 418, "/accounts/:id", false},
		"a flush":                 {func(c *echo.Context, _ error) error { return http.NewResponseController(c.Response()).Flush() }, 400, "", false},
		"the server's own writer": {func(c *echo.Context, _ error) error { http.Error(own(c), "mine", http.StatusLocked); return nil }, 423, "mine\n", false},
		"that one, and no status": {func(c *echo.Context, _ error) error { _, err := io.WriteString(own(c), "mine"); return err }, 400, "mine", false},
		"that one, and an error":  {func(c *echo.Context, _ error) error { http.Error(own(c), "mine", http.StatusLocked); return io.EOF }, 423, "mine\n", true},
		"the connection":          {func(c *echo.Context, _ error) error { return teapot(c) }, 418, "mine", false},
	} {
		for stack, outside := range map[string][]echo.MiddlewareFunc{
			"alone": nil, "behind Gzip": {middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1000})},
		} {
			if name == "a flush" && outside != nil {
				continue // Gzip sends an incomplete body
			}
			t.Run(name+", "+stack, func(t *testing.T) {
				t.Parallel()
				e := newEcho()
				e.Use(outside...)
				e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c *echo.Context) error {
						response, w := c.Response(), own(c)
						err := next(c)
						if (err != nil) != test.fails || c.Response() != response || own(c) != w {
							t.Errorf("outside the error is %v, and the writer a %T", err, c.Response())
						}
						return err
					}
				})
				e.GET("/accounts/:id", func(*echo.Context) error { t.Error("the handler has run"); return nil },
					echov5lock.Middleware(locktest.New(t).Locker, echov5lock.Header("X-Account"), echov5lock.WithErrorHandler(test.handle)))
				server := httptest.NewServer(e)
				defer server.Close()
				if status, body := get(t, server, "/accounts/7"); status != test.status || body != test.body {
					t.Errorf("%d %s", status, body)
				}
			})
		}
	}
}

// get sends a GET over a real connection.
func get(t *testing.T, server *httptest.Server, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// teapot hijacks the connection and answers 418.
func teapot(c *echo.Context) error {
	conn, _, err := http.NewResponseController(c.Response()).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
	return err
}

// A key may answer by itself. Nothing is added to its answer, also if a middleware outside keeps it
// back.
func TestKeyAnswers(t *testing.T) {
	t.Parallel()
	answers := core.KeyOf(func(c *echo.Context) (string, error) {
		c.Response().Header().Set("Location", "/login")
		return "", c.NoContent(http.StatusSeeOther)
	})
	teapot := echov5lock.WithErrorHandler(func(c *echo.Context, _ error) error { return c.NoContent(http.StatusTeapot) })
	for name, outside := range map[string][]echo.MiddlewareFunc{"alone": nil, "behind Gzip": {middleware.Gzip()}} {
		locks := locktest.New(t).Locker
		e := newEcho()
		e.Use(outside...)
		e.POST("/lock", ok, echov5lock.Middleware(locks, answers, teapot))
		e.POST("/once", ok, echov5lock.Idempotent(locks, answers, teapot))
		for _, path := range []string{"/lock", "/once"} {
			r := newRequest(t, http.MethodPost, path, "")
			r.Header.Set("Accept-Encoding", "gzip")
			if w := serve(e, r); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login" || w.Body.Len() > 0 {
				t.Errorf("%s, %s: %d %v %s", name, path, w.Code, w.Header(), w.Body)
			}
		}
	}
}

func TestWithErrorHandlerNeedsAFunction(t *testing.T) {
	t.Parallel()
	adaptertest.WantPanic(t, func() { echov5lock.WithErrorHandler(nil) }, "WithErrorHandler")
}

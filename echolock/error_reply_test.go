package echolock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A middleware outside the lock and the application get an *echo.HTTPError.
func TestRefusalIsAnHTTPError(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	var seen error
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			seen = next(c)
			if c.Response().Committed {
				t.Error("answered before the application's handler")
			}
			if got := c.Response().Header().Get("Retry-After"); got != "" {
				t.Errorf("Retry-After %q before there is an answer", got)
			}
			return seen
		}
	})
	e.GET("/", ok, echolock.Middleware(locks.Locker, literal, core.WithRetryAfter(1500*time.Millisecond)))
	w := serve(e, newRequest(t, http.MethodGet, "/", ""))

	adaptertest.WantProblem(t, w, http.StatusConflict, "busy")
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q", got)
	}
	answer, isHTTPError := seen.(*echo.HTTPError) //nolint:errorlint // as Echo's own handler does
	if !isHTTPError || answer.Code != http.StatusConflict || answer.Message != "busy" {
		t.Fatalf("%T %v", seen, seen)
	}
	var detail *core.Error
	if !errors.Is(seen, core.ErrBusy) || !errors.As(seen, &detail) || detail.RetryAfter != 1500*time.Millisecond {
		t.Errorf("no core.ErrBusy in %v", seen)
	}
	if refusal, known := core.RefusalOf(seen); !known || refusal.Code != "busy" {
		t.Errorf("refusal %+v, %v", refusal, known)
	}
	if text := seen.Error(); text != "code=409, message=busy, internal=code=409, message=busy, internal=reqlock: busy" {
		t.Errorf("in a log: %s", text)
	}
}

// The answer to HEAD has no body, and Echo in debug mode indents the body.
func TestDefaultHTTPErrorHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	e.Debug = true
	e.Any("/", ok, echolock.Middleware(locks.Locker, literal))
	adaptertest.WantProblem(t, serve(e, newRequest(t, http.MethodGet, "/", "")), http.StatusConflict, "busy")
	if w := serve(e, newRequest(t, http.MethodHead, "/", "")); w.Code != http.StatusConflict || w.Body.Len() > 0 {
		t.Errorf("HEAD: %d %s", w.Code, w.Body)
	}
}

// Typical HTTPErrorHandlers of applications render refusals.
func TestCustomHTTPErrorHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	t.Cleanup(locks.Hold(theKey))
	page := filepath.Join(t.TempDir(), "409.html")
	if err := os.WriteFile(page, []byte("<p>busy</p>"), 0o600); err != nil {
		t.Fatal(err)
	}
	codeOf := func(err error) (code int, message any) {
		var answer *echo.HTTPError
		if !errors.As(err, &answer) {
			t.Errorf("%T %v", err, err)
		}
		return answer.Code, answer.Message
	}
	for name, test := range map[string]struct {
		handle      func(err error, c echo.Context)
		status      int
		contentType string
		body        string
	}{
		"Echo's, after a look": {func(err error, c echo.Context) {
			c.Logger().Error(err)
			c.Echo().DefaultHTTPErrorHandler(err, c)
		}, 409, "application/problem+json", `"code":"busy"`},
		"Echo's, written out": {func(err error, c echo.Context) {
			answer := err.(*echo.HTTPError)                         //nolint:errorlint // as Echo's own handler does
			if inner, ok := answer.Internal.(*echo.HTTPError); ok { //nolint:errorlint // so too
				answer = inner
			}
			_ = c.JSON(answer.Code, answer.Message)
		}, 409, "application/problem+json", `"code":"busy"`},
		"the message as JSON": {func(err error, c echo.Context) {
			_ = c.JSON(codeOf(err))
		}, 409, "application/json", `"busy"`},
		"the message in JSON": {func(err error, c echo.Context) {
			code, message := codeOf(err)
			_ = c.JSON(code, echo.Map{"error": message})
		}, 409, "application/json", `{"error":"busy"}`},
		"the message as a string": {func(err error, c echo.Context) {
			code, message := codeOf(err)
			_ = c.String(code, message.(string))
		}, 409, "text/plain; charset=UTF-8", "busy"},
		"JSON of its own": {func(err error, c echo.Context) {
			code, message := codeOf(err)
			_ = c.JSON(code, map[string]string{"error": fmt.Sprint(message)})
		}, 409, "application/json", `{"error":"busy"}`},
		"a type of its own": {func(err error, c echo.Context) {
			c.Response().Header().Set("Content-Type", "application/vnd.api+json")
			_ = c.JSON(codeOf(err))
		}, 409, "application/vnd.api+json", `"busy"`},
		"text": {func(err error, c echo.Context) {
			code, message := codeOf(err)
			_ = c.String(code, fmt.Sprint(message))
		}, 409, "text/plain; charset=UTF-8", "busy"},
		"by refusal": {func(err error, c echo.Context) {
			refusal, _ := core.RefusalOf(err)
			_ = c.HTML(refusal.HTTP, "<b>"+refusal.Code+"</b>")
		}, 409, "text/html; charset=UTF-8", "<b>busy</b>"},
		"no status": {func(_ error, c echo.Context) {
			_, _ = c.Response().Write([]byte("mine"))
		}, 409, "", "mine"},
		"another status": {func(err error, c echo.Context) {
			if errors.Is(err, core.ErrBusy) {
				_ = c.NoContent(http.StatusLocked)
			}
		}, 423, "", ""},
		"a page": {func(err error, c echo.Context) {
			code, _ := codeOf(err)
			if err := c.File(page); err != nil || code != http.StatusConflict {
				t.Errorf("%d, %v", code, err)
			}
		}, 200, "text/html; charset=utf-8", "<p>busy</p>"}, // so it is for all of the application's errors
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.HTTPErrorHandler = test.handle
			e.GET("/", ok, echolock.Middleware(locks.Locker, literal))
			w := serve(e, newRequest(t, http.MethodGet, "/", ""))
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if got := w.Result().Header.Get("Content-Type"); got != test.contentType {
				t.Errorf("Content-Type %q", got)
			}
			refused := test.status >= http.StatusBadRequest
			if (w.Header().Get("Retry-After") == "1") != refused || (w.Header().Get("Cache-Control") == "no-store") != refused {
				t.Errorf("header %v", w.Header())
			}
		})
	}
}

// If the client has disconnected, the answer is only a status, and the application's
// log gets the error.
func TestDisconnectedClientGetsOnlyAStatus(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	logged := make(chan middleware.RequestLoggerValues, 1)
	e.Use(middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		LogStatus: true, LogError: true,
		LogValuesFunc: func(_ echo.Context, v middleware.RequestLoggerValues) error {
			logged <- v
			return nil
		},
	}))
	e.GET("/", ok, echolock.Middleware(locks.Locker, literal, core.WithWait(time.Minute)))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answered := make(chan *httptest.ResponseRecorder, 1)
	r := newRequest(t, http.MethodGet, "/", "").WithContext(ctx)
	go func() { answered <- serve(e, r) }()
	suite.Eventually(t, "the request waits", func() bool { return locks.Waiting(theKey) == 1 })
	leave()
	w := suite.Receive(t, "the request is answered", answered)
	if w.Code != 499 || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	if v := suite.Receive(t, "the request is logged", logged); v.Status != 499 || !errors.Is(v.Error, context.Canceled) {
		t.Errorf("logged %d, %v", v.Status, v.Error)
	}
}

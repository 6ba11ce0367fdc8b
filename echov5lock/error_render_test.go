package echov5lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// document is what Echo renders of a refusal with core.ErrBusy.
const document = `{"type":"about:blank","title":"Conflict","status":409,"detail":"Another request holds the lock that this one needs.","code":"busy"}` + "\n"

// Echo's error handlers, and typical ones of applications, render refusals.
func TestHTTPErrorHandlers(t *testing.T) {
	t.Parallel()
	const mine, problem = "application/json", "application/problem+json"
	var httpError *echo.HTTPError
	for name, test := range map[string]struct {
		handle      echo.HTTPErrorHandler
		problemType string
		status      int
		contentType string
		body        string
	}{
		"Echo's":               {echo.DefaultHTTPErrorHandler(false), "", 409, problem, document},
		"Echo's, exposing":     {echo.DefaultHTTPErrorHandler(true), "", 409, problem, document},
		"Echo's, with a type":  {echo.DefaultHTTPErrorHandler(true), "/errors/", 409, problem, strings.Replace(strings.Replace(document, "about:blank", "/errors/busy", 1), "Conflict", "Busy", 1)},
		"RFC 9457":             {echo.ProblemDetailsHTTPErrorHandler(false), "", 409, problem, `{"type":"urn:reqlock:busy","title":"Busy","status":409,"detail":"Another request holds the lock that this one needs."}` + "\n"},
		"RFC 9457, exposing":   {echo.ProblemDetailsHTTPErrorHandler(true), "", 409, problem, `{"type":"urn:reqlock:busy","title":"Busy","status":409,"detail":"Another request holds the lock that this one needs."}` + "\n"},
		"RFC 9457, with types": {echo.ProblemDetailsHTTPErrorHandler(true), "/errors/", 409, problem, `{"type":"/errors/busy","title":"Busy","status":409,"detail":"Another request holds the lock that this one needs."}` + "\n"},
		"by its status": {func(c *echo.Context, err error) {
			_ = c.JSON(echo.StatusCode(err), map[string]string{"error": err.Error()})
		}, "", 409, mine, `{"error":"busy"}` + "\n"},
		"as an HTTPError": {func(c *echo.Context, err error) {
			if errors.As(err, &httpError) {
				_ = c.JSON(httpError.Code, httpError)
			}
		}, "", 409, mine, `{"message":"busy"}` + "\n"},
		"in text": {func(c *echo.Context, err error) { _ = c.String(echo.StatusCode(err), err.Error()) }, "", 409, "text/plain; charset=UTF-8", "busy"},
		"in text, and logged": {func(c *echo.Context, err error) {
			logged, _ := json.Marshal(err)
			_ = c.String(echo.StatusCode(err), string(logged))
		}, "", 409, "text/plain; charset=UTF-8", strings.TrimSpace(document)},
		"no status":   {func(c *echo.Context, _ error) { _, _ = c.Response().Write([]byte("mine")) }, "", 409, "", "mine"},
		"as a page":   {func(c *echo.Context, _ error) { _ = c.HTML(200, "<p>busy</p>") }, "", 200, "text/html; charset=UTF-8", "<p>busy</p>"},
		"a wrong one": {func(c *echo.Context, err error) { echo.DefaultHTTPErrorHandler(true)(c, errors.Join(err)) }, "", 409, problem, document},
	} {
		t.Run(name, func(t *testing.T) {
			locks := locktest.New(t, core.WithRetryAfter(1500*time.Millisecond))
			defer locks.Hold(theKey)()
			e := newEcho()
			e.HTTPErrorHandler = test.handle
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					err := next(c)
					if _, status := echo.ResolveResponseStatus(c.Response(), err); status != http.StatusConflict || !errors.Is(err, core.ErrBusy) {
						t.Errorf("outside the status is %d, and the error %v", status, err)
					}
					if refusal, known := core.RefusalOf(err); !known || refusal.RetryAfter != 1500*time.Millisecond || err.Error() != "busy" {
						t.Errorf("%+v, %v", refusal, err)
					}
					return err
				}
			})
			opts := []core.Option{}
			if test.problemType != "" {
				opts = append(opts, core.WithProblemType(test.problemType))
			}
			e.Any("/", ok, echov5lock.Middleware(locks.Locker, literal, opts...))
			w := serve(e, newRequest(t, http.MethodGet, "/", ""))
			if got := w.Header().Get("Content-Type"); w.Code != test.status || w.Body.String() != test.body || got != test.contentType {
				t.Errorf("%d %s %s", w.Code, got, w.Body)
			}
			if isRefused := test.status >= 400; (w.Header().Get("Retry-After") == "2") != isRefused || (w.Header().Get("Cache-Control") == "no-store") != isRefused {
				t.Errorf("header %v", w.Header())
			}
			if !strings.Contains(name, "Echo") && !strings.Contains(name, "RFC") {
				return
			}
			if w := serve(e, newRequest(t, http.MethodHead, "/", "")); w.Code != test.status || w.Body.Len() > 0 || w.Header().Get("Retry-After") != "2" {
				t.Errorf("HEAD: %d %v %s", w.Code, w.Header(), w.Body)
			}
		})
	}
}

// Errors of the application's key are rendered as any other error of the application, if they say
// how.
func TestKeyErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"another error":               {errors.New(theKey), 500, `"code":"key_error"`},
		"a status":                    {coded(403), 403, `"code":"key_error"`},
		"a status, and a form":        {formed(403), 403, `{"mine":403}`},
		"an HTTPError":                {echo.NewHTTPError(http.StatusForbidden, "not yours"), 403, `{"message":"not yours"}`},
		"one of Echo's":               {echo.ErrUnauthorized, 401, `{"message":"Unauthorized"}`},
		"a fault of the key's":        {echo.ErrServiceUnavailable, 503, `{"message":"Service Unavailable"}`},
		"a wrapped one":               {errors.Join(echo.ErrUnauthorized, errors.New(theKey)), 401, `{"message":"Unauthorized"}`},
		"a ProblemError":              {&echo.ProblemError{Status: http.StatusForbidden}, 403, `{"message":"Forbidden"}`},
		"a success":                   {echo.NewHTTPError(http.StatusOK, "fine"), 500, `"code":"key_error"`},
		"a status of no error":        {formed(600), 500, `"code":"key_error"`},
		"no status at all":            {&echo.HTTPError{Message: "none"}, 500, `"code":"key_error"`},
		"one that means something":    {echo.ErrUnauthorized.Wrap(core.ErrNoKey), 400, `"code":"no_key"`},
		"a success that does":         {echo.HTTPError{Code: 200}.Wrap(core.ErrInvalidKey), 400, `"code":"invalid_key"`},
		"one that cannot be compared": {many{core.ErrInvalidKey}, 400, `"code":"invalid_key"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			warned := 0
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned {
					warned++
				}
			}))
			e := newEcho()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					err := next(c)
					if _, isMany := test.err.(many); !isMany && !errors.Is(err, test.err) || echo.StatusCode(err) != test.status { //nolint:errorlint // this very type
						t.Errorf("outside the error is %v, of the status %d", err, echo.StatusCode(err))
					}
					return err
				}
			})
			e.GET("/", func(*echo.Context) error { t.Error("the handler has run"); return nil },
				echov5lock.Middleware(locks.Locker, core.KeyOf(func(*echo.Context) (string, error) { return "", test.err })))
			w := serve(e, newRequest(t, http.MethodGet, "/", ""))
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) || strings.Contains(w.Body.String(), theKey) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if isFault := test.status >= http.StatusInternalServerError; (warned == 1) != isFault || warned > 1 {
				t.Errorf("%d warnings", warned)
			}
		})
	}
}

// coded is an error with a status.
type coded int

func (coded) Error() string     { return theKey }
func (e coded) StatusCode() int { return int(e) }

// formed is an error of an application, which the DefaultHTTPErrorHandler renders.
type formed int

func (formed) Error() string                  { return theKey }
func (e formed) StatusCode() int              { return int(e) }
func (e formed) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"mine": int(e)}) }

// many is an error that cannot be compared.
type many []error

func (many) Error() string     { return "many" }
func (m many) Unwrap() []error { return m }

// ContextTimeout around the lock limits the wait too. The lock answers, although ContextTimeout
// wraps the error.
func TestContextTimeoutOutsideLimitsTheWait(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	e.POST("/", ok, middleware.ContextTimeout(20*time.Millisecond), echov5lock.Middleware(locks.Locker, literal, core.WithWait(time.Minute)))
	w := serve(e, newRequest(t, http.MethodPost, "/", ""))
	adaptertest.WantProblem(t, w, http.StatusServiceUnavailable, "deadline")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("header %v", w.Header())
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
		LogStatus: true,
		LogValuesFunc: func(_ *echo.Context, v middleware.RequestLoggerValues) error {
			logged <- v
			return nil
		},
	}))
	e.GET("/", ok, echov5lock.Middleware(locks.Locker, literal, core.WithWait(time.Minute)))
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

// Behind a writer without Unwrap nothing shows whether the request is answered.
func TestRefusalBehindAnotherWriter(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold(theKey)()
	e := newEcho()
	hidden := httptest.NewRecorder()
	e.GET("/", ok, func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { c.SetResponse(hidden); return next(c) }
	}, echov5lock.Middleware(locks.Locker, literal))
	serve(e, newRequest(t, http.MethodGet, "/", ""))
	if hidden.Code != http.StatusConflict || hidden.Body.String() != document {
		t.Errorf("%d %s", hidden.Code, hidden.Body)
	}
}

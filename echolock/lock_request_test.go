package echolock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// After the handler has ended in any way, the middlewares outside and the
// HTTPErrorHandler get the request from before the lock, and the lock is free.
func TestRequestIsRestored(t *testing.T) {
	t.Parallel()
	crash, failure := errors.New("crash"), errors.New("failure")
	for name, test := range map[string]struct {
		end    func() error
		panics any
		err    error
	}{
		"returns":            {func() error { return nil }, nil, nil},
		"fails":              {func() error { return failure }, nil, failure},
		"panics":             {func() error { panic(crash) }, crash, nil},
		"aborts":             {func() error { panic(http.ErrAbortHandler) }, http.ErrAbortHandler, nil},
		"ends its goroutine": {func() error { runtime.Goexit(); return nil }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			e := newEcho()
			r := newRequest(t, http.MethodGet, "/", "")
			var inner func() error // the Err of the handler's context
			restored := func(c echo.Context, where string) {
				if c.Request() != r || r.Context().Err() != nil {
					t.Errorf("%s sees another request, or its context has ended: %v", where, r.Context().Err())
				}
				if _, locked := core.LeaseFromContext(c.Request().Context()); locked || !adaptertest.IsFree(t, locks.Locker) {
					t.Errorf("%s sees the lock held", where)
				}
				if inner() == nil {
					t.Errorf("%s: the handler's context goes on after its lease", where)
				}
			}
			handled := error(nil)
			e.HTTPErrorHandler = func(err error, c echo.Context) {
				handled = err
				restored(c, "the HTTPErrorHandler")
			}
			outside := false
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					defer func() {
						outside = true
						restored(c, "the middleware outside")
					}()
					return next(c)
				}
			})
			// Middlewares behind the lock may go on with a request of their own.
			inside := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					type key struct{}
					c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), key{}, 1)))
					return next(c)
				}
			}
			e.GET("/", func(c echo.Context) error {
				inner = c.Request().Context().Err
				if lease, _ := core.LeaseFromContext(c.Request().Context()); lease.Key() != theKey || adaptertest.IsFree(t, locks.Locker) {
					t.Error("the handler runs without its lock")
				}
				return test.end()
			}, echolock.Middleware(locks.Locker, literal), inside)

			done := make(chan any, 1)
			go func() {
				defer func() { done <- recover() }()
				serve(e, r)
			}()
			if caught := suite.Receive(t, "the handler ends", done); caught != test.panics {
				t.Errorf("panic %v", caught)
			}
			if !outside || !errors.Is(handled, test.err) {
				t.Errorf("outside %v, handled %v", outside, handled)
			}
		})
	}
}

// The server removes the temporary files of an upload, although the handler has
// parsed it in another request.
func TestUploadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	locks := locktest.New(t)
	files := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		uploads := 0
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "multipart-") {
				uploads++
			}
		}
		return uploads
	}
	e := newEcho()
	inside := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.SetRequest(c.Request().WithContext(c.Request().Context()))
			return next(c)
		}
	}
	e.POST("/", func(c echo.Context) error {
		if err := c.Request().ParseMultipartForm(0); err != nil {
			t.Errorf("ParseMultipartForm: %v", err)
		}
		if files() != 1 || c.FormValue("id") != "7" {
			t.Errorf("%d files, id %q", files(), c.FormValue("id"))
		}
		return ok(c)
	}, echolock.Middleware(locks.Locker, echolock.Form("id")), inside)
	server := httptest.NewServer(e)
	defer server.Close()

	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("id", "7")
	file, err := w.CreateFormFile("upload", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(file, "text")
	_ = w.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, &form)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Errorf("status %d", answer.StatusCode)
	}
	suite.Eventually(t, "the file is removed", func() bool { return files() == 0 })
}

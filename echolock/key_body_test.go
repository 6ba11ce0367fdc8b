package echolock_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
)

// The handler can bind the body that keys have read.
func TestBodyReachesTheHandler(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	type payment struct {
		From string `json:"from" form:"from"`
		To   string `json:"to" form:"to"`
	}
	var uploaded bytes.Buffer
	form := multipart.NewWriter(&uploaded)
	_ = form.WriteField("from", "a")
	_ = form.WriteField("to", "b")
	_ = form.Close()
	for name, test := range map[string]struct {
		contentType string
		body        string
		field       func(string) echolock.Key
	}{
		"json":       {"application/json", `{"from":"a","to":"b"}`, echolock.JSONField},
		"urlencoded": {"application/x-www-form-urlencoded", "from=a&to=b", echolock.Form},
		"multipart":  {form.FormDataContentType(), uploaded.String(), echolock.Form},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.POST("/payments", func(c echo.Context) error {
				var p payment
				if err := c.Bind(&p); err != nil || p != (payment{"a", "b"}) {
					t.Errorf("the handler binds %+v, %v", p, err)
				}
				if lease, _ := core.LeaseFromContext(c.Request().Context()); lease.Key() != name+":a" {
					t.Errorf("key %q", lease.Key())
				}
				return ok(c)
			}, echolock.Middleware(locks.Locker, core.All(test.field("from").Named(name), test.field("to").Named(name)), core.WithMaxBody(1000)))
			r := newRequest(t, http.MethodPost, "/payments", test.body)
			r.Header.Set("Content-Type", test.contentType)
			if w := serve(e, r); w.Code != http.StatusNoContent {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// If a middleware before the lock binds the body, GetAs reads the key from the bound
// value. JSONField refuses the request, which is no fault of the client.
func TestBoundBeforeTheLock(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	type payment struct{ Account string }
	e := newEcho()
	validate := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			p := new(payment)
			if err := c.Bind(p); err != nil {
				return err
			}
			c.Set("payment", p)
			return next(c)
		}
	}
	e.POST("/taken", ok, validate, echolock.Middleware(locks.Locker, echolock.JSONField("account")))
	e.POST("/handed-on", ok, validate, echolock.Middleware(locks.Locker,
		echolock.GetAs("payment", func(p *payment) string { return p.Account })))
	for path, want := range map[string]int{"/taken": http.StatusInternalServerError, "/handed-on": http.StatusNoContent} {
		r := newRequest(t, http.MethodPost, path, `{"account":"7"}`)
		r.Header.Set("Content-Type", "application/json")
		if w := serve(e, r); w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// Before the lock, BodyLimit limits what a key reads. Behind the lock, it
// refuses only after the wait.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithWait(10*time.Second))
	lock := echolock.Middleware(locks.Locker, echolock.JSONField("id"))
	limit := middleware.BodyLimit("16B")
	const short, long = `{"id":"7"}`, `{"id":"7","text":"far too much"}`
	for name, test := range map[string]struct {
		stack []echo.MiddlewareFunc
		body  io.Reader
		want  int
		ours  bool
	}{
		"before, short":           {[]echo.MiddlewareFunc{limit, lock}, strings.NewReader(short), 204, false},
		"before, short, unknown":  {[]echo.MiddlewareFunc{limit, lock}, slowly(short), 204, false},
		"before, long":            {[]echo.MiddlewareFunc{limit, lock}, strings.NewReader(long), 413, false},
		"before, long, unknown":   {[]echo.MiddlewareFunc{limit, lock}, slowly(long), 413, true},
		"behind, short":           {[]echo.MiddlewareFunc{lock, limit}, strings.NewReader(short), 204, false},
		"behind, long":            {[]echo.MiddlewareFunc{lock, limit}, strings.NewReader(long), 413, false},
		"behind, long, unknown":   {[]echo.MiddlewareFunc{lock, limit}, slowly(long), 413, false},
		"key's own, long":         {[]echo.MiddlewareFunc{echolock.Middleware(locks.Locker, echolock.JSONField("id"), core.WithMaxBody(16))}, strings.NewReader(long), 413, true},
		"before, broken, unknown": {[]echo.MiddlewareFunc{limit, lock}, slowly(`{"id`), 400, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.POST("/", func(c echo.Context) error {
				if _, err := io.ReadAll(c.Request().Body); err != nil {
					return err
				}
				return ok(c)
			}, test.stack...)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", test.body)
			w := serve(e, r)
			if ours := strings.Contains(w.Body.String(), `"code"`); w.Code != test.want || ours != test.ours {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// If the key is in the body, Decompress belongs before the lock.
func TestDecompress(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	lock := echolock.Middleware(locks.Locker, echolock.JSONField("id"))
	for name, test := range map[string]struct {
		stack []echo.MiddlewareFunc
		want  int
	}{
		"before": {[]echo.MiddlewareFunc{middleware.Decompress(), lock}, http.StatusNoContent},
		"behind": {[]echo.MiddlewareFunc{lock, middleware.Decompress()}, http.StatusBadRequest},
	} {
		e := newEcho()
		e.POST("/", func(c echo.Context) error {
			var body struct{ ID string }
			if err := json.NewDecoder(c.Request().Body).Decode(&body); err != nil || body.ID != "7" {
				t.Errorf("the handler reads %+v, %v", body, err)
			}
			return ok(c)
		}, test.stack...)
		var body strings.Builder
		zip := gzip.NewWriter(&body)
		_, _ = io.WriteString(zip, `{"id":"7"}`)
		_ = zip.Close()
		r := newRequest(t, http.MethodPost, "/", body.String())
		r.Header.Set("Content-Encoding", "gzip")
		if w := serve(e, r); w.Code != test.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// slowly returns a body of unknown length.
func slowly(body string) io.Reader { return io.MultiReader(strings.NewReader(body)) }

func TestOuterMiddlewareSeesTheParsedForm(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			if got := c.FormValue("amount"); got != "3" {
				t.Errorf("outside the lock the amount is %q", got)
			}
			return err
		}
	})
	e.POST("/", func(c echo.Context) error { return c.String(http.StatusOK, c.FormValue("amount")) },
		echolock.Middleware(locks.Locker, literal))
	r := newRequest(t, http.MethodPost, "/", "amount=3")
	r.Header.Set("Content-Type", echo.MIMEApplicationForm)
	if w := serve(e, r); w.Code != http.StatusOK || w.Body.String() != "3" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

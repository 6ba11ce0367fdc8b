package echov5lock_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
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
		field       func(string) echov5lock.Key
	}{
		"json":       {"application/json", `{"from":"a","to":"b"}`, echov5lock.JSONField},
		"urlencoded": {"application/x-www-form-urlencoded", "from=a&to=b", echov5lock.Form},
		"multipart":  {form.FormDataContentType(), uploaded.String(), echov5lock.Form},
	} {
		e := newEcho()
		e.POST("/payments", func(c *echo.Context) error {
			var p payment
			if err := c.Bind(&p); err != nil || p != (payment{"a", "b"}) {
				t.Errorf("the handler binds %+v, %v", p, err)
			}
			if lease, _ := core.LeaseFromContext(c.Request().Context()); lease.Key() != name+":a" {
				t.Errorf("key %q", lease.Key())
			}
			return ok(c)
		}, echov5lock.Middleware(locks.Locker, core.All(test.field("from").Named(name), test.field("to").Named(name)), core.WithMaxBody(1000)))
		r := newRequest(t, http.MethodPost, "/payments", test.body)
		r.Header.Set("Content-Type", test.contentType)
		if w := serve(e, r); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Before the lock, BodyLimit limits what a key and a fingerprint read.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	limit := middleware.BodyLimit(16)
	const short, long, form = `{"id":"7"}`, `{"id":"7","text":"far too much"}`, "text=far+too+much&id=7"
	ofForm, ofJSON := echov5lock.Middleware(locks, echov5lock.Form("id")), echov5lock.Middleware(locks, echov5lock.JSONField("id"))
	once := echov5lock.Idempotent(locks, byKey)
	for name, test := range map[string]struct {
		stack []echo.MiddlewareFunc
		body  string
		want  int
		ours  bool
	}{
		"JSON, short":       {[]echo.MiddlewareFunc{limit, ofJSON}, short, 204, false},
		"JSON, long":        {[]echo.MiddlewareFunc{limit, ofJSON}, long, 413, true},
		"form, long":        {[]echo.MiddlewareFunc{limit, ofForm}, form, 413, true},
		"fingerprint, long": {[]echo.MiddlewareFunc{limit, once}, long, 413, true},
		"behind, long":      {[]echo.MiddlewareFunc{ofJSON, limit}, long, 413, false},
	} {
		e := newEcho()
		e.POST("/", func(c *echo.Context) error {
			if _, err := io.ReadAll(c.Request().Body); err != nil {
				return err
			}
			return ok(c)
		}, test.stack...)
		slowly := io.MultiReader(strings.NewReader(test.body)) // a body of unknown length
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", slowly)
		r.Header.Set("Idempotency-Key", "k")
		if strings.HasPrefix(name, "form") {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := serve(e, r)
		if ours := strings.Contains(w.Body.String(), `"code":"body_too_large"`); w.Code != test.want || ours != test.ours {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestOuterMiddlewareSeesTheParsedForm(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, lock := range map[string]echo.MiddlewareFunc{
		"Middleware": echov5lock.Middleware(locks, literal),
		"Idempotent": echov5lock.Idempotent(locks, literal),
	} {
		e := newEcho()
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				err := next(c)
				if got := c.FormValue("amount"); got != "3" {
					t.Errorf("%s: outside the lock the amount is %q", name, got)
				}
				return err
			}
		})
		e.POST("/", func(c *echo.Context) error { return c.String(http.StatusOK, c.FormValue("amount")) }, lock)
		r := newRequest(t, http.MethodPost, "/", "amount=3")
		r.Header.Set("Content-Type", echo.MIMEApplicationForm)
		if w := serve(e, r); w.Code != http.StatusOK || w.Body.String() != "3" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

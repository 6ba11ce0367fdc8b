package echolock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
)

// Each key reads the part of the request in its name.
// nethttplock tests what keys refuse.
func TestKeys(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.IPExtractor = echo.ExtractIPDirect()
	r := newRequest(t, http.MethodPost, "/?q=query", "f=form")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-H", "header")
	r.Header.Set("Idempotency-Key", `"idempotency"`)
	r.AddCookie(&http.Cookie{Name: "c", Value: "cookie"})
	c := e.NewContext(r, httptest.NewRecorder())
	c.SetParamNames("p")
	c.SetParamValues("param")
	c.Set("n", 77)
	for want, key := range map[string]echolock.Key{
		"header":      echolock.Header("X-H"),
		"idempotency": echolock.IdempotencyKey(),
		"param":       echolock.Param("p"),
		"query":       echolock.QueryParam("q"),
		"cookie":      echolock.Cookie("c"),
		"form":        echolock.Form("f"),
		"192.0.2.1":   echolock.RealIP(),
		"example.com": echolock.Host(),
		"77":          echolock.Get("n"),
		"as":          echolock.GetAs("n", func(int) string { return "as" }),
		"literal":     echolock.Literal("literal"),
	} {
		if got, err := key.Read(c); got.Raw() != want || err != nil {
			t.Errorf("%q, %v; want %q", got.Raw(), err, want)
		}
	}
	for name, test := range map[string]struct {
		key  echolock.Key
		want error
	}{
		"Param of another name": {echolock.Param("other"), core.ErrNoKey},
		"Get of nothing":        {echolock.Get("other"), core.ErrNoKey},
		"GetAs of nothing":      {echolock.GetAs("other", func(int) string { return "as" }), core.ErrNoKey},
		"GetAs of another type": {echolock.GetAs("n", func(string) string { return "as" }), core.ErrInvalidKey},
	} {
		if got, err := test.key.Read(c); !errors.Is(err, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The key is the value that the handler reads, for each encoding of the path.
func TestKeyOfParamIsTheHandlersValue(t *testing.T) {
	t.Parallel()
	e := newEcho()
	var param, key string
	var err error
	e.GET("/accounts/:id", func(c echo.Context) error {
		param = c.Param("id")
		var read core.RequestKey
		read, err = echolock.Param("id").Read(c)
		key = read.Raw()
		return nil
	})
	for path, want := range map[string]string{
		"/accounts/42":          "42",
		"/accounts/4%32":        "4%32", // so Echo hands it on
		"/accounts/al%69ce":     "al%69ce",
		"/accounts/a%2562":      "a%62",
		"/accounts/a%62":        "a%62",
		"/accounts/a%40b":       "a%40b",
		"/accounts/a%2Fb":       "a%2Fb",
		"/accounts/100%25":      "100%",
		"/accounts/%C3%A9":      "é",
		"/accounts/with%20room": "with room",
	} {
		param, key, err = "", "", nil
		serve(e, newRequest(t, http.MethodGet, path, ""))
		if key != want || key != param || err != nil {
			t.Errorf("%s: key %q, %v, the handler reads %q; want %q", path, key, err, param, want)
		}
	}
	serve(e, newRequest(t, http.MethodGet, "/accounts/a%0Ab", ""))
	if !errors.Is(err, core.ErrInvalidKey) {
		t.Errorf("a control character: %q, %v", key, err)
	}
}

// A user cannot lock the account of another user with a different encoding of the
// path.
func TestEncodedParamLocksNoOtherAccount(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	defer locks.Hold("alice")()
	e := newEcho()
	isOwner := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Param("id") != c.Request().Header.Get("X-User") {
				return echo.ErrForbidden
			}
			return next(c)
		}
	}
	e.POST("/accounts/:id/transfer", ok, isOwner, echolock.Middleware(locks.Locker, echolock.Param("id")))
	for user, want := range map[string]int{"al%69ce": http.StatusNoContent, "alice": http.StatusConflict} {
		r := newRequest(t, http.MethodPost, "/accounts/"+user+"/transfer", "")
		r.Header.Set("X-User", user)
		if w := serve(e, r); w.Code != want {
			t.Errorf("%s: %d %s", user, w.Code, w.Body)
		}
	}
}

// Without an IPExtractor any client can choose its address.
func TestRealIP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		extract   echo.IPExtractor
		peer      string
		forwarded string
		want      string
		err       error
	}{
		"nothing set, nothing sent":   {nil, "192.0.2.1:1", "", "192.0.2.1", nil},
		"nothing set, a forged one":   {nil, "192.0.2.1:1", "198.51.100.9", "198.51.100.9", nil},
		"nothing set, garbage":        {nil, "192.0.2.1:1", "a friend", "", core.ErrInvalidKey},
		"direct, a forged one":        {echo.ExtractIPDirect(), "192.0.2.1:1", "198.51.100.9", "192.0.2.1", nil},
		"a trusted proxy":             {echo.ExtractIPFromXFFHeader(), "10.0.0.1:1", "6.6.6.6, 198.51.100.9", "198.51.100.9", nil},
		"a peer that is not":          {echo.ExtractIPFromXFFHeader(), "192.0.2.1:1", "198.51.100.9", "192.0.2.1", nil},
		"an IPv4 address as an IPv6":  {echo.ExtractIPDirect(), "[::ffff:192.0.2.1]:1", "", "192.0.2.1", nil},
		"an IPv6 address, at length":  {nil, "192.0.2.1:1", "2001:DB8:0:0::1", "2001:db8::1", nil},
		"a peer on a Unix socket":     {echo.ExtractIPDirect(), "@", "", "", core.ErrNoKey},
		"a peer on a Unix socket too": {nil, "@", "", "", core.ErrNoKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho()
			e.IPExtractor = test.extract
			r := newRequest(t, http.MethodGet, "/", "")
			r.RemoteAddr = test.peer
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
			key, err := echolock.RealIP().Read(e.NewContext(r, nil))
			if got := key.Raw(); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Keys get the context type of the application.
func TestContextOfTheApplication(t *testing.T) {
	t.Parallel()
	type appContext struct {
		echo.Context
		user string
	}
	locks := locktest.New(t)
	e := newEcho()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return next(&appContext{c, "ada"}) }
	})
	e.GET("/", func(c echo.Context) error {
		lease, _ := core.LeaseFromContext(c.Request().Context())
		return c.String(http.StatusOK, lease.Key())
	}, echolock.Middleware(locks.Locker, core.Getter(func(c echo.Context) string { return c.(*appContext).user })))
	if w := serve(e, newRequest(t, http.MethodGet, "/", "")); w.Body.String() != "ada" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

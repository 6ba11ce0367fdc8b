package echov5lock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// Each key reads the part of the request in its name.
// nethttplock tests what keys refuse.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := newRequest(t, http.MethodPost, "/?q=query", "f=form")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-H", "header")
	r.Header.Set("Idempotency-Key", `"idempotency"`)
	r.AddCookie(&http.Cookie{Name: "c", Value: "cookie"})
	c := newEcho().NewContext(r, httptest.NewRecorder())
	c.SetPathValues(echo.PathValues{{Name: "p", Value: "param"}})
	c.Set("n", 77)
	for want, key := range map[string]echov5lock.Key{
		"header":      echov5lock.Header("X-H"),
		"idempotency": echov5lock.IdempotencyKey(),
		"param":       echov5lock.Param("p"),
		"query":       echov5lock.QueryParam("q"),
		"cookie":      echov5lock.Cookie("c"),
		"form":        echov5lock.Form("f"),
		"192.0.2.1":   echov5lock.RealIP(),
		"example.com": echov5lock.Host(),
		"77":          echov5lock.Get("n"),
		"as":          echov5lock.GetAs("n", func(int) string { return "as" }),
		"literal":     echov5lock.Literal("literal"),
	} {
		if got, err := key.Read(c); got.Raw() != want || err != nil {
			t.Errorf("%q, %v; want %q", got.Raw(), err, want)
		}
	}
	for name, test := range map[string]struct {
		key  echov5lock.Key
		want error
	}{
		"Param of another name": {echov5lock.Param("other"), core.ErrNoKey},
		"Get of nothing":        {echov5lock.Get("other"), core.ErrNoKey},
		"GetAs of nothing":      {echov5lock.GetAs("other", func(int) string { return "as" }), core.ErrNoKey},
		"GetAs of another type": {echov5lock.GetAs("n", func(string) string { return "as" }), core.ErrInvalidKey},
	} {
		if got, err := test.key.Read(c); !errors.Is(err, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKeysWithoutANamePanic(t *testing.T) {
	t.Parallel()
	for want, register := range map[string]func(){
		"QueryParam needs a name": func() { echov5lock.QueryParam("") },
		"Get needs a name":        func() { echov5lock.Get("") },
		"GetAs needs a name":      func() { echov5lock.GetAs("", func(string) string { return "" }) },
		"GetAs needs a function":  func() { echov5lock.GetAs[string]("user", nil) },
		`Param(":id"): write the name alone, as in Param("id")`: func() { echov5lock.Param(":id") },
	} {
		adaptertest.WantPanic(t, register, want)
	}
}

// The key is the value that the handler reads, for each encoding of the path.
func TestKeyOfParamIsTheHandlersValue(t *testing.T) {
	t.Parallel()
	for _, unescape := range []bool{false, true} {
		e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{UnescapePathParamValues: unescape})})
		param, key, reads := "", "", 0
		e.GET("/accounts/:id", func(c *echo.Context) error {
			read, err := echov5lock.Param("id").Read(c)
			param, key, reads = c.Param("id"), read.Raw(), reads+1
			return err
		})
		for _, path := range []string{"42", "4%32", "a%2562", "a%40b", "a%2Fb", "100%25", "%C3%A9", "with%20room"} {
			serve(e, newRequest(t, http.MethodGet, "/accounts/"+path, ""))
			if key != param || key == "" {
				t.Errorf("%s: key %q, the handler reads %q", path, key, param)
			}
		}
		if reads != 8 {
			t.Errorf("the handler has run %d times", reads)
		}
	}
}

// A wrong method of a known path is no mistake of the program, although its route names no parameters.
func TestParamWarnsOfNoWrongMethod(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.POST("/accounts/:id", ok)
	var err error
	e.Use(func(echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { _, err = echov5lock.Param("id").Read(c); return nil }
	})
	serve(e, newRequest(t, http.MethodGet, "/accounts/42", ""))
	if !errors.Is(err, core.ErrNoKey) || strings.Contains(err.Error(), "no wildcard") {
		t.Errorf("%v", err)
	}
}

// Without an IPExtractor the address is that of the peer.
func TestRealIP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		extract   echo.IPExtractor
		peer      string
		forwarded string
		want      string
		err       error
	}{
		"nothing set, a forged one":  {nil, "192.0.2.1:1", "198.51.100.9", "192.0.2.1", nil},
		"as v4, garbage":             {echo.LegacyIPExtractor(), "192.0.2.1:1", "a friend", "", core.ErrInvalidKey},
		"a trusted proxy":            {echo.ExtractIPFromXFFHeader(), "10.0.0.1:1", "6.6.6.6, 198.51.100.9", "198.51.100.9", nil},
		"an IPv4 address as an IPv6": {nil, "[::ffff:192.0.2.1]:1", "", "192.0.2.1", nil},
		"a peer on a Unix socket":    {nil, "@", "", "", core.ErrNoKey},
	} {
		e := newEcho()
		e.IPExtractor = test.extract
		r := newRequest(t, http.MethodGet, "/", "")
		r.RemoteAddr = test.peer
		r.Header.Set("X-Forwarded-For", test.forwarded)
		key, err := echov5lock.RealIP().Read(e.NewContext(r, nil))
		if got := key.Raw(); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

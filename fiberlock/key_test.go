package fiberlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

type (
	user    struct{ ID int }
	userKey struct{}
)

// read reads a key from a request of the route "/accounts/:id/*".
func read(t *testing.T, key fiberlock.Key, r *http.Request, config fiber.Config, prepare func(fiber.Ctx)) (got string, err error) {
	t.Helper()
	app, ran := fiber.New(config), false
	app.All("/accounts/:id/*", func(c fiber.Ctx) error {
		ran = true
		if prepare != nil {
			prepare(c)
		}
		var found core.RequestKey
		found, err = key.Read(c)
		got = strings.Clone(found.Raw())
		return nil
	})
	if w := answerOf(app, r); !ran {
		t.Fatalf("the handler has not run: %d %s", w.Code, w.Body)
	}
	return got, err
}

// Each key reads the part of the request in its name. adapter tests what keys refuse.
func TestKeys(t *testing.T) {
	t.Parallel()
	set := func(name, value any) func(fiber.Ctx) { return func(c fiber.Ctx) { c.Locals(name, value) } }
	userID := func(u *user) string { return strconv.Itoa(u.ID) }
	const form, json = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"
	for name, test := range map[string]struct {
		key     fiberlock.Key
		body    string
		headers []string
		prepare func(fiber.Ctx)
		want    string
		wantErr error
	}{
		"param":                {fiberlock.Params("id"), "", nil, nil, "4%32", nil}, // as c.Params returns it
		"param, another case":  {fiberlock.Params("ID"), "", nil, nil, "4%32", nil},
		"param, the rest":      {fiberlock.Params("*"), "", nil, nil, "rest", nil},
		"no param":             {fiberlock.Params("name"), "", nil, nil, "", core.ErrNoKey},
		"header":               {fiberlock.Header("X-Account"), "", []string{"x-account: 42"}, nil, "42", nil},
		"two headers":          {fiberlock.Header("X-Account"), "", []string{"X-Account: 42", "x-account: 42"}, nil, "", core.ErrInvalidKey},
		"idempotency key":      {fiberlock.IdempotencyKey(), "", []string{`Idempotency-Key: "k1"`}, nil, "k1", nil},
		"two idempotency keys": {fiberlock.IdempotencyKey(), "", []string{"Idempotency-Key: k1", "Idempotency-Key: k1"}, nil, "", core.ErrInvalidKey},
		"query":                {fiberlock.Query("q"), "", nil, nil, "a b", nil},
		"two query parameters": {fiberlock.Query("two"), "", nil, nil, "", core.ErrInvalidKey},
		"no query":             {fiberlock.Query("none"), "", nil, nil, "", core.ErrNoKey},
		"cookie":               {fiberlock.Cookies("c"), "", []string{"Cookie: b=1; c=4%32"}, nil, "4%32", nil}, // as c.Cookies returns it
		"no cookie":            {fiberlock.Cookies("c"), "", []string{"Cookie: d=42"}, nil, "", core.ErrNoKey},
		"two cookies":          {fiberlock.Cookies("c"), "", []string{"Cookie: c=42; c=43"}, nil, "", core.ErrInvalidKey},
		"form":                 {fiberlock.Form("f"), "f=4+2", []string{form}, nil, "4 2", nil},
		"form, in the query":   {fiberlock.Form("q"), "q=42", []string{form}, nil, "", core.ErrInvalidKey},
		"no form":              {fiberlock.Form("f"), "f=42", []string{"Content-Type: text/plain"}, nil, "", core.ErrNoKey},
		"JSON":                 {fiberlock.JSONField("a.id"), `{"a":{"id":42}}`, []string{json}, nil, "42", nil},
		"JSON, compressed":     {fiberlock.JSONField("a.id"), "\x1f\x8b", []string{json, "Content-Encoding: gzip"}, nil, "", core.ErrInvalidKey},
		"host":                 {fiberlock.Host(), "", nil, nil, "tenant.example", nil},
		"IP":                   {fiberlock.IP(), "", nil, nil, "0.0.0.0", nil},
		"value":                {fiberlock.Locals("user"), "", nil, set("user", "ada"), "ada", nil},
		"value, no name":       {fiberlock.Locals(userKey{}), "", nil, set(userKey{}, 7), "7", nil},
		"value, mistyped":      {fiberlock.Locals("user"), "", nil, set("user", 7.0), "", core.ErrInvalidKey},
		"no value":             {fiberlock.Locals("user"), "", nil, nil, "", core.ErrNoKey},
		"as":                   {fiberlock.LocalsAs("user", userID), "", nil, set("user", &user{7}), "7", nil},
		"as, nil":              {fiberlock.LocalsAs("user", userID), "", nil, set("user", (*user)(nil)), "", core.ErrNoKey},
		"as, mistyped":         {fiberlock.LocalsAs("user", userID), "", nil, set("user", user{7}), "", core.ErrInvalidKey},
		"literal":              {fiberlock.Literal("all"), "", nil, nil, "all", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRequest(t, http.MethodPost, "http://Tenant.example:8080/accounts/4%32/rest?q=a+b&two=1&two=1", test.body, test.headers...)
			got, err := read(t, test.key, r, fiber.Config{}, test.prepare)
			if got != test.want || !errors.Is(err, test.wantErr) || (err == nil) != (test.wantErr == nil) {
				t.Errorf("%q, %v; want %q, %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

// A client can choose its address and its host only through a proxy that the application trusts.
func TestKeysBehindAProxy(t *testing.T) {
	t.Parallel()
	trusting := fiber.Config{
		TrustProxy: true, ProxyHeader: fiber.HeaderXForwardedFor, TrustProxyConfig: fiber.TrustProxyConfig{Proxies: []string{"0.0.0.0"}},
	}
	other := trusting
	other.TrustProxyConfig.Proxies = []string{"192.0.2.1"}
	for name, test := range map[string]struct {
		key       fiberlock.Key
		config    fiber.Config
		forwarded string
		want      string
		wantErr   error
	}{
		"address, not trusted": {fiberlock.IP(), other, "192.0.2.7", "0.0.0.0", nil},
		"address":              {fiberlock.IP(), trusting, "2001:DB8::1", "2001:db8::1", nil},
		"address, a list":      {fiberlock.IP(), trusting, "192.0.2.7, 192.0.2.8", "", core.ErrInvalidKey},
		"host, not trusted":    {fiberlock.Host(), other, "", "example.com", nil},
		"host":                 {fiberlock.Host(), trusting, "", "tenant.example", nil},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/accounts/42/rest", nil)
		r.Header.Set("X-Forwarded-For", test.forwarded)
		r.Header.Set("X-Forwarded-Host", "Tenant.example")
		if got, err := read(t, test.key, r, test.config, nil); got != test.want || !errors.Is(err, test.wantErr) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, test.want, test.wantErr)
		}
	}
}

func TestWrongNamesPanic(t *testing.T) {
	t.Parallel()
	for want, register := range map[string]func(){
		`Params(":id"): write the name alone`:      func() { fiberlock.Params(":id") },
		"Header needs a name":                      func() { fiberlock.Header("") },
		"Query needs a name":                       func() { fiberlock.Query("") },
		"Cookies needs a name":                     func() { fiberlock.Cookies("") },
		"Form needs a name":                        func() { fiberlock.Form("") },
		"JSONField needs a path":                   func() { fiberlock.JSONField("a..b") },
		"Literal needs a key":                      func() { fiberlock.Literal("") },
		"Locals needs a name":                      func() { fiberlock.Locals(nil) },
		"LocalsAs needs a name that is comparable": func() { fiberlock.LocalsAs([]int{}, strconv.Itoa) },
		"LocalsAs needs a function":                func() { fiberlock.LocalsAs[int]("a", nil) },
	} {
		adaptertest.WantPanic(t, register, want)
	}
}

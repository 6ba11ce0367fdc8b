package httpkey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// check compares a key and its error with the expected ones.
func check(t *testing.T, key string, err error, want string, wantErr error) {
	t.Helper()
	if key != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("got %q, %v; want %q, %v", key, err, want, wantErr)
	}
}

type userKey struct{}

type user struct{ id string }

func TestKeys(t *testing.T) {
	t.Parallel()
	header := func(lines ...string) func(*http.Request) {
		return func(r *http.Request) {
			for _, line := range lines {
				name, value, _ := strings.Cut(line, ": ")
				r.Header.Add(name, value)
			}
		}
	}
	query := func(q string) func(*http.Request) {
		return func(r *http.Request) { r.URL.RawQuery = q }
	}
	peer := func(addr string) func(*http.Request) {
		return func(r *http.Request) { r.RemoteAddr = addr }
	}
	host := func(host string) func(*http.Request) {
		return func(r *http.Request) { r.Host = host }
	}
	value := func(v any) func(*http.Request) {
		return func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), userKey{}, v)) }
	}
	var noUser *user
	userID := httpkey.ContextValueAs(userKey{}, func(u *user) string { return u.id })

	for name, test := range map[string]struct {
		key     httpkey.Key
		prepare func(*http.Request)
		want    string
		wantErr error
	}{
		"header":            {httpkey.Header("x-account"), header("X-Account: 42"), "42", nil},
		"header missing":    {httpkey.Header("X-Account"), header(), "", core.ErrNoKey},
		"header empty":      {httpkey.Header("X-Account"), header("X-Account: "), "", core.ErrNoKey},
		"header repeated":   {httpkey.Header("X-Account"), header("X-Account: 1", "x-account: 1"), "", core.ErrInvalidKey},
		"header too long":   {httpkey.Header("X-Account"), header("X-Account: " + strings.Repeat("x", 513)), "", core.ErrInvalidKey},
		"header with a tab": {httpkey.Header("X-Account"), header("X-Account: a\tb"), "", core.ErrInvalidKey},

		"idempotency key":           {httpkey.IdempotencyKey(), header("idempotency-key: k1"), "k1", nil},
		"idempotency key quoted":    {httpkey.IdempotencyKey(), header(`Idempotency-Key: "k1"`), "k1", nil},
		"idempotency key missing":   {httpkey.IdempotencyKey(), header("X-Idempotency-Key: k1"), "", core.ErrNoKey},
		"idempotency key empty":     {httpkey.IdempotencyKey(), header("Idempotency-Key: "), "", core.ErrNoKey},
		"idempotency key malformed": {httpkey.IdempotencyKey(), header(`Idempotency-Key: "k1`), "", core.ErrInvalidKey},
		"idempotency key repeated":  {httpkey.IdempotencyKey(), header("Idempotency-Key: k1", "Idempotency-Key: k1"), "", core.ErrInvalidKey},

		"path":         {httpkey.PathValue("id"), func(r *http.Request) { r.SetPathValue("id", "42") }, "42", nil},
		"path missing": {httpkey.PathValue("id"), header(), "", core.ErrNoKey},
		"path escaped": {httpkey.PathValue("id"), func(r *http.Request) { r.SetPathValue("id", "a\x00b") }, "", core.ErrInvalidKey},

		"query":           {httpkey.Query("Query", "a"), query("b=1&a=4%202"), "4 2", nil},
		"query missing":   {httpkey.Query("Query", "a"), query("A=1"), "", core.ErrNoKey},
		"query empty":     {httpkey.Query("Query", "a"), query("a=&b=1"), "", core.ErrNoKey},
		"query repeated":  {httpkey.Query("Query", "a"), query("a=1&a=2"), "", core.ErrInvalidKey},
		"query malformed": {httpkey.Query("Query", "a"), query("a=1&b=%zz"), "", core.ErrInvalidKey},
		"query semicolon": {httpkey.Query("Query", "a"), query("a=1;a=2"), "", core.ErrInvalidKey},

		"cookie":          {httpkey.Cookie("sid"), header("Cookie: a=1; sid=s1"), "s1", nil},
		"cookie missing":  {httpkey.Cookie("sid"), header("Cookie: SID=s1"), "", core.ErrNoKey},
		"cookie empty":    {httpkey.Cookie("sid"), header("Cookie: sid="), "", core.ErrNoKey},
		"cookie repeated": {httpkey.Cookie("sid"), header("Cookie: sid=1; sid=2"), "", core.ErrInvalidKey},
		"cookie in two":   {httpkey.Cookie("sid"), header("Cookie: sid=1", "Cookie: sid=2"), "", core.ErrInvalidKey},

		"peer":              {httpkey.RemoteIP(), peer("192.0.2.1:1234"), "192.0.2.1", nil},
		"peer IPv6":         {httpkey.RemoteIP(), peer("[2001:db8::1]:1234"), "2001:db8::1", nil},
		"peer mapped":       {httpkey.RemoteIP(), peer("[::ffff:192.0.2.1]:1234"), "192.0.2.1", nil},
		"peer in long form": {httpkey.RemoteIP(), peer("[2001:DB8:0:0:0:0:0:1]:1"), "2001:db8::1", nil},
		"peer without port": {httpkey.RemoteIP(), peer("2001:db8::1"), "2001:db8::1", nil},
		"peer missing":      {httpkey.RemoteIP(), peer(""), "", core.ErrNoKey},
		"peer on a socket":  {httpkey.RemoteIP(), peer("@"), "", core.ErrInvalidKey},
		"peer forged":       {httpkey.RemoteIP(), header("X-Forwarded-For: 203.0.113.9", "X-Real-Ip: 203.0.113.9"), "192.0.2.1", nil},

		"host":          {httpkey.Host(), host("Tenant.example:443"), "tenant.example", nil},
		"host missing":  {httpkey.Host(), host(""), "", core.ErrNoKey},
		"host is other": {httpkey.Host(), host("a b"), "", core.ErrInvalidKey},
		"host forged":   {httpkey.Host(), header("X-Forwarded-Host: other.example", "Host: other.example"), "example.com", nil},

		"basic":           {httpkey.BasicUser(), func(r *http.Request) { r.SetBasicAuth("ada", "pw") }, "ada", nil},
		"basic missing":   {httpkey.BasicUser(), header(), "", core.ErrNoKey},
		"basic empty":     {httpkey.BasicUser(), func(r *http.Request) { r.SetBasicAuth("", "pw") }, "", core.ErrNoKey},
		"basic is bearer": {httpkey.BasicUser(), header("Authorization: Bearer YWRhOnB3"), "", core.ErrNoKey},
		"basic repeated": {
			httpkey.BasicUser(), header("Authorization: Basic YWRhOnB3", "Authorization: Basic YWRhOnB3"), "", core.ErrInvalidKey,
		},

		"context":              {httpkey.ContextValue(userKey{}), value("u1"), "u1", nil},
		"context integer":      {httpkey.ContextValue(userKey{}), value(uint8(7)), "7", nil},
		"context missing":      {httpkey.ContextValue(userKey{}), header(), "", core.ErrNoKey},
		"context other type":   {httpkey.ContextValue(userKey{}), value(1.5), "", core.ErrInvalidKey},
		"context as":           {userID, value(&user{"u1"}), "u1", nil},
		"context as, nil":      {userID, value(noUser), "", core.ErrNoKey},
		"context as, missing":  {userID, header(), "", core.ErrNoKey},
		"context as, mistyped": {userID, value("u1"), "", core.ErrInvalidKey},

		"literal": {httpkey.Literal("all"), header(), "all", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			test.prepare(r)
			key, err := test.key.Read(r)
			check(t, key.Raw(), err, test.want, test.wantErr)
		})
	}
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(){
		"Header":                 func() { httpkey.Header("") },
		"PathValue":              func() { httpkey.PathValue("") },
		"PathValue pattern":      func() { httpkey.PathValue("{id}") },
		"PathValue rest":         func() { httpkey.PathValue("{id...}") },
		"PathValue colon":        func() { httpkey.PathValue(":id") },
		"PathValue only signs":   func() { httpkey.PathValue("{}") },
		"Query":                  func() { httpkey.Query("Query", "") },
		"Cookie":                 func() { httpkey.Cookie("") },
		"Form":                   func() { formKey("") },
		"JSONField":              func() { jsonKey("") },
		"JSONField dots":         func() { jsonKey("a..b") },
		"JSONField trailing dot": func() { jsonKey("a.") },
		"ContextValue":           func() { httpkey.ContextValue(nil) },
		"ContextValueAs":         func() { httpkey.ContextValueAs(nil, func(string) string { return "" }) },
		"ContextValueAs getter":  func() { httpkey.ContextValueAs[string](userKey{}, nil) },
		"Literal":                func() { httpkey.Literal("") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				function, _, _ := strings.Cut(name, " ")
				message, _ := recover().(string)
				if !strings.HasPrefix(message, "reqlock: "+function) {
					t.Errorf("panic %q does not name %s", message, function)
				}
			}()
			register()
		})
	}
}

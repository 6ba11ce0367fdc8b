package nethttplock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

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
	userID := nethttplock.ContextValueAs(userKey{}, func(u *user) string { return u.id })

	for name, test := range map[string]struct {
		key     nethttplock.Key
		prepare func(*http.Request)
		want    string
		wantErr error
	}{
		"header":            {nethttplock.Header("x-account"), header("X-Account: 42"), "42", nil},
		"header missing":    {nethttplock.Header("X-Account"), header(), "", core.ErrNoKey},
		"header empty":      {nethttplock.Header("X-Account"), header("X-Account: "), "", core.ErrNoKey},
		"header repeated":   {nethttplock.Header("X-Account"), header("X-Account: 1", "x-account: 1"), "", core.ErrInvalidKey},
		"header too long":   {nethttplock.Header("X-Account"), header("X-Account: " + strings.Repeat("x", 513)), "", core.ErrInvalidKey},
		"header with a tab": {nethttplock.Header("X-Account"), header("X-Account: a\tb"), "", core.ErrInvalidKey},

		"idempotency key":           {nethttplock.IdempotencyKey(), header("idempotency-key: k1"), "k1", nil},
		"idempotency key quoted":    {nethttplock.IdempotencyKey(), header(`Idempotency-Key: "k1"`), "k1", nil},
		"idempotency key missing":   {nethttplock.IdempotencyKey(), header("X-Idempotency-Key: k1"), "", core.ErrNoKey},
		"idempotency key empty":     {nethttplock.IdempotencyKey(), header("Idempotency-Key: "), "", core.ErrNoKey},
		"idempotency key malformed": {nethttplock.IdempotencyKey(), header(`Idempotency-Key: "k1`), "", core.ErrInvalidKey},
		"idempotency key repeated":  {nethttplock.IdempotencyKey(), header("Idempotency-Key: k1", "Idempotency-Key: k1"), "", core.ErrInvalidKey},

		"path":         {nethttplock.PathValue("id"), func(r *http.Request) { r.SetPathValue("id", "42") }, "42", nil},
		"path missing": {nethttplock.PathValue("id"), header(), "", core.ErrNoKey},
		"path escaped": {nethttplock.PathValue("id"), func(r *http.Request) { r.SetPathValue("id", "a\x00b") }, "", core.ErrInvalidKey},

		"query":           {nethttplock.Query("a"), query("b=1&a=4%202"), "4 2", nil},
		"query missing":   {nethttplock.Query("a"), query("A=1"), "", core.ErrNoKey},
		"query empty":     {nethttplock.Query("a"), query("a=&b=1"), "", core.ErrNoKey},
		"query repeated":  {nethttplock.Query("a"), query("a=1&a=2"), "", core.ErrInvalidKey},
		"query malformed": {nethttplock.Query("a"), query("a=1&b=%zz"), "", core.ErrInvalidKey},
		"query semicolon": {nethttplock.Query("a"), query("a=1;a=2"), "", core.ErrInvalidKey},

		"cookie":          {nethttplock.Cookie("sid"), header("Cookie: a=1; sid=s1"), "s1", nil},
		"cookie missing":  {nethttplock.Cookie("sid"), header("Cookie: SID=s1"), "", core.ErrNoKey},
		"cookie empty":    {nethttplock.Cookie("sid"), header("Cookie: sid="), "", core.ErrNoKey},
		"cookie repeated": {nethttplock.Cookie("sid"), header("Cookie: sid=1; sid=2"), "", core.ErrInvalidKey},
		"cookie in two":   {nethttplock.Cookie("sid"), header("Cookie: sid=1", "Cookie: sid=2"), "", core.ErrInvalidKey},

		"peer":              {nethttplock.RemoteIP(), peer("192.0.2.1:1234"), "192.0.2.1", nil},
		"peer IPv6":         {nethttplock.RemoteIP(), peer("[2001:db8::1]:1234"), "2001:db8::1", nil},
		"peer mapped":       {nethttplock.RemoteIP(), peer("[::ffff:192.0.2.1]:1234"), "192.0.2.1", nil},
		"peer in long form": {nethttplock.RemoteIP(), peer("[2001:DB8:0:0:0:0:0:1]:1"), "2001:db8::1", nil},
		"peer without port": {nethttplock.RemoteIP(), peer("2001:db8::1"), "2001:db8::1", nil},
		"peer missing":      {nethttplock.RemoteIP(), peer(""), "", core.ErrNoKey},
		"peer on a socket":  {nethttplock.RemoteIP(), peer("@"), "", core.ErrInvalidKey},
		"peer forged":       {nethttplock.RemoteIP(), header("X-Forwarded-For: 203.0.113.9", "X-Real-Ip: 203.0.113.9"), "192.0.2.1", nil},

		"host":          {nethttplock.Host(), host("Tenant.example:443"), "tenant.example", nil},
		"host missing":  {nethttplock.Host(), host(""), "", core.ErrNoKey},
		"host is other": {nethttplock.Host(), host("a b"), "", core.ErrInvalidKey},
		"host forged":   {nethttplock.Host(), header("X-Forwarded-Host: other.example", "Host: other.example"), "example.com", nil},

		"basic":           {nethttplock.BasicUser(), func(r *http.Request) { r.SetBasicAuth("ada", "pw") }, "ada", nil},
		"basic missing":   {nethttplock.BasicUser(), header(), "", core.ErrNoKey},
		"basic empty":     {nethttplock.BasicUser(), func(r *http.Request) { r.SetBasicAuth("", "pw") }, "", core.ErrNoKey},
		"basic is bearer": {nethttplock.BasicUser(), header("Authorization: Bearer YWRhOnB3"), "", core.ErrNoKey},
		"basic repeated": {
			nethttplock.BasicUser(), header("Authorization: Basic YWRhOnB3", "Authorization: Basic YWRhOnB3"), "", core.ErrInvalidKey,
		},

		"context":              {nethttplock.ContextValue(userKey{}), value("u1"), "u1", nil},
		"context integer":      {nethttplock.ContextValue(userKey{}), value(uint8(7)), "7", nil},
		"context missing":      {nethttplock.ContextValue(userKey{}), header(), "", core.ErrNoKey},
		"context other type":   {nethttplock.ContextValue(userKey{}), value(1.5), "", core.ErrInvalidKey},
		"context as":           {userID, value(&user{"u1"}), "u1", nil},
		"context as, nil":      {userID, value(noUser), "", core.ErrNoKey},
		"context as, missing":  {userID, header(), "", core.ErrNoKey},
		"context as, mistyped": {userID, value("u1"), "", core.ErrInvalidKey},

		"literal": {nethttplock.Literal("all"), header(), "all", nil},
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

func TestKeysPanicForWrongArguments(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(){
		"Header":                 func() { nethttplock.Header("") },
		"PathValue":              func() { nethttplock.PathValue("") },
		"PathValue pattern":      func() { nethttplock.PathValue("{id}") },
		"PathValue rest":         func() { nethttplock.PathValue("{id...}") },
		"PathValue colon":        func() { nethttplock.PathValue(":id") },
		"PathValue only signs":   func() { nethttplock.PathValue("{}") },
		"Query":                  func() { nethttplock.Query("") },
		"Cookie":                 func() { nethttplock.Cookie("") },
		"Form":                   func() { nethttplock.Form("") },
		"JSONField":              func() { nethttplock.JSONField("") },
		"JSONField dots":         func() { nethttplock.JSONField("a..b") },
		"JSONField trailing dot": func() { nethttplock.JSONField("a.") },
		"ContextValue":           func() { nethttplock.ContextValue(nil) },
		"ContextValueAs":         func() { nethttplock.ContextValueAs(nil, func(string) string { return "" }) },
		"ContextValueAs getter":  func() { nethttplock.ContextValueAs[string](userKey{}, nil) },
		"Literal":                func() { nethttplock.Literal("") },
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

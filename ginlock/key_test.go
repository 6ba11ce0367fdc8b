package ginlock_test

import (
	"bytes"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
)

type (
	user    struct{ ID int }
	userKey struct{}
)

// Each key reads the part of the request in its name, and returns the value
// that c returns.
func TestKeys(t *testing.T) {
	t.Parallel()
	set := func(name, value any) func(*gin.Context) {
		return func(c *gin.Context) { c.Set(name, value) }
	}
	header := func(name string, values ...string) func(*gin.Context) {
		return func(c *gin.Context) { c.Request.Header[name] = values }
	}
	body := func(contentType, text string) func(*gin.Context) {
		return func(c *gin.Context) {
			c.Request = httptest.NewRequestWithContext(c.Request.Context(), http.MethodPost, "/", strings.NewReader(text))
			c.Request.Header.Set("Content-Type", contentType)
		}
	}
	const urlencoded = "application/x-www-form-urlencoded"
	userID := func(u *user) string { return strconv.Itoa(u.ID) }
	for name, test := range map[string]struct {
		key     ginlock.Key
		prepare func(*gin.Context)
		want    string
		wantErr error
	}{
		"param":                {ginlock.Param("id"), func(c *gin.Context) { c.AddParam("id", "42") }, "42", nil},
		"no param":             {ginlock.Param("id"), func(c *gin.Context) { c.AddParam("name", "42") }, "", core.ErrNoKey},
		"odd param":            {ginlock.Param("id"), func(c *gin.Context) { c.AddParam("id", "4\n2") }, "", core.ErrInvalidKey},
		"header":               {ginlock.Header("X-Account"), header("X-Account", "42"), "42", nil},
		"two headers":          {ginlock.Header("X-Account"), header("X-Account", "42", "43"), "", core.ErrInvalidKey},
		"idempotency key":      {ginlock.IdempotencyKey(), header("Idempotency-Key", `"k1"`), "k1", nil},
		"no idempotency key":   {ginlock.IdempotencyKey(), header("X-Idempotency-Key", "k1"), "", core.ErrNoKey},
		"two idempotency keys": {ginlock.IdempotencyKey(), header("Idempotency-Key", "k1", "k1"), "", core.ErrInvalidKey},
		"query":                {ginlock.Query("q"), func(c *gin.Context) { c.Request.URL.RawQuery = "q=a+b" }, "a b", nil},
		"no query":             {ginlock.Query("q"), func(*gin.Context) {}, "", core.ErrNoKey},

		"cookie":           {ginlock.Cookie("c"), header("Cookie", "c=42"), "42", nil},
		"cookie escaped":   {ginlock.Cookie("c"), header("Cookie", "c=%34%32"), "42", nil},
		"cookie malformed": {ginlock.Cookie("c"), header("Cookie", "c=%4"), "", core.ErrInvalidKey},
		"cookie odd":       {ginlock.Cookie("c"), header("Cookie", "c=%00"), "", core.ErrInvalidKey},
		"cookie blank":     {ginlock.Cookie("c"), header("Cookie", "c="), "", core.ErrNoKey},
		"no cookie":        {ginlock.Cookie("c"), header("Cookie", "d=42"), "", core.ErrNoKey},
		"two cookies":      {ginlock.Cookie("c"), header("Cookie", "c=42; c=43"), "", core.ErrInvalidKey},

		"form":    {ginlock.Form("f"), body(urlencoded, "f=42"), "42", nil},
		"no form": {ginlock.Form("f"), body("text/plain", "f=42"), "", core.ErrNoKey},
		"JSON":    {ginlock.JSONField("a.id"), body("application/json", `{"a":{"id":42}}`), "42", nil},
		"no JSON": {ginlock.JSONField("a.id"), body("application/json", `{"a":{}}`), "", core.ErrNoKey},

		"host":      {ginlock.Host(), func(c *gin.Context) { c.Request.Host = "Tenant.example:443" }, "tenant.example", nil},
		"no host":   {ginlock.Host(), func(c *gin.Context) { c.Request.Host = "" }, "", core.ErrNoKey},
		"host, odd": {ginlock.Host(), func(c *gin.Context) { c.Request.Host = "a b" }, "", core.ErrInvalidKey},

		"value":           {ginlock.Get("user"), set("user", "ada"), "ada", nil},
		"value, integer":  {ginlock.Get("user"), set("user", uint(7)), "7", nil},
		"value, no name":  {ginlock.Get(userKey{}), set(userKey{}, "ada"), "ada", nil},
		"value, mistyped": {ginlock.Get("user"), set("user", 7.0), "", core.ErrInvalidKey},
		"no value":        {ginlock.Get("user"), set("role", "admin"), "", core.ErrNoKey},
		"as":              {ginlock.GetAs("user", userID), set("user", &user{7}), "7", nil},
		"as, nil":         {ginlock.GetAs("user", userID), set("user", (*user)(nil)), "", core.ErrNoKey},
		"as, mistyped":    {ginlock.GetAs("user", userID), set("user", user{7}), "", core.ErrInvalidKey},
		"as, no value":    {ginlock.GetAs("user", userID), set("role", "admin"), "", core.ErrNoKey},
		"literal":         {ginlock.Literal("all"), func(*gin.Context) {}, "all", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			test.prepare(c)
			key, err := test.key.Read(c)
			if got := key.Raw(); got != test.want || !errors.Is(err, test.wantErr) || (err == nil) != (test.wantErr == nil) {
				t.Errorf("%q, %v; want %q, %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

// The key is the client's address from c.ClientIP, in one notation.
func TestClientIP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		proxies   []string
		platform  string
		peer      string
		forwarded string
		want      string
		wantErr   error
	}{
		"peer":                  {nil, "", "192.0.2.1:1234", "", "192.0.2.1", nil},
		"peer, mapped":          {nil, "", "[::ffff:192.0.2.1]:1234", "", "192.0.2.1", nil},
		"forged":                {nil, "", "192.0.2.1:1234", "203.0.113.9", "192.0.2.1", nil},
		"of a proxy":            {[]string{"192.0.2.1"}, "", "192.0.2.1:1234", "203.0.113.9", "203.0.113.9", nil},
		"of a proxy, mapped":    {[]string{"192.0.2.1"}, "", "192.0.2.1:1234", "::ffff:203.0.113.9", "203.0.113.9", nil},
		"of a proxy, long form": {[]string{"192.0.2.1"}, "", "192.0.2.1:1234", "2001:DB8:0:0:0:0:0:1", "2001:db8::1", nil},
		"platform":              {nil, "X-Forwarded-For", "192.0.2.1:1234", "203.0.113.9", "203.0.113.9", nil},
		"platform, no address":  {nil, "X-Forwarded-For", "192.0.2.1:1234", "unknown", "", core.ErrInvalidKey},
		"no peer":               {nil, "", "", "", "", core.ErrNoKey},
		"peer without port":     {nil, "", "192.0.2.1", "", "", core.ErrNoKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := gin.CreateTestContext(httptest.NewRecorder())
			r.TrustedPlatform = test.platform
			if err := r.SetTrustedProxies(test.proxies); err != nil {
				t.Fatal(err)
			}
			c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			c.Request.RemoteAddr = test.peer
			if test.forwarded != "" {
				c.Request.Header.Set("X-Forwarded-For", test.forwarded)
			}
			key, err := ginlock.ClientIP().Read(c)
			if got := key.Raw(); got != test.want || !errors.Is(err, test.wantErr) || (err == nil) != (test.wantErr == nil) {
				t.Errorf("%q, %v; want %q, %v", got, err, test.want, test.wantErr)
			}
		})
	}
}

type payment struct {
	Account string `json:"account" form:"account" binding:"required"`
}

// A handler can bind the body with each method of Gin after a key has read
// it, whether or not a middleware has bound it before.
func TestBodyIsStillThere(t *testing.T) {
	t.Parallel()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("account", "42")
	_ = w.Close()
	const json = `{"account":"42"}`
	validate := func(c *gin.Context) {
		if err := c.ShouldBindBodyWithJSON(&payment{}); err != nil {
			t.Errorf("validation: %v", err)
		}
	}
	parse := func(c *gin.Context) { _ = c.PostForm("anything") }
	byField := func(c *gin.Context) string { return c.PostForm("account") }
	bound := func(bind func(*gin.Context, any) error) func(*gin.Context) string {
		return func(c *gin.Context) string {
			var p payment
			if err := bind(c, &p); err != nil {
				t.Errorf("bind: %v", err)
			}
			return p.Account
		}
	}
	for name, test := range map[string]struct {
		key         ginlock.Key
		contentType string
		body        string
		before      gin.HandlerFunc
		account     func(*gin.Context) string
	}{
		"JSON":           {ginlock.JSONField("account"), gin.MIMEJSON, json, nil, bound((*gin.Context).ShouldBindJSON)},
		"JSON by type":   {ginlock.JSONField("account"), gin.MIMEJSON, json, nil, bound((*gin.Context).ShouldBind)},
		"JSON kept":      {ginlock.JSONField("account"), gin.MIMEJSON, json, nil, bound((*gin.Context).ShouldBindBodyWithJSON)},
		"JSON validated": {ginlock.JSONField("account"), gin.MIMEJSON, json, validate, bound((*gin.Context).ShouldBindBodyWithJSON)},
		"raw": {ginlock.JSONField("account"), gin.MIMEJSON, json, nil, func(c *gin.Context) string {
			raw, err := c.GetRawData()
			if string(raw) != json || err != nil {
				t.Errorf("raw %q, %v", raw, err)
			}
			return "42"
		}},
		"form":             {ginlock.Form("account"), gin.MIMEPOSTForm, "account=42", nil, byField},
		"form bound":       {ginlock.Form("account"), gin.MIMEPOSTForm, "account=42", nil, bound((*gin.Context).ShouldBind)},
		"form parsed":      {ginlock.Form("account"), gin.MIMEPOSTForm, "account=42", parse, byField},
		"multipart":        {ginlock.Form("account"), w.FormDataContentType(), form.String(), nil, byField},
		"multipart bound":  {ginlock.Form("account"), w.FormDataContentType(), form.String(), nil, bound((*gin.Context).ShouldBind)},
		"multipart parsed": {ginlock.Form("account"), w.FormDataContentType(), form.String(), parse, byField},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gin.New()
			if test.before != nil {
				r.Use(test.before)
			}
			r.Use(func(c *gin.Context) {
				if key, err := test.key.Read(c); key.Raw() != "42" || err != nil {
					t.Errorf("key %q, %v", key.Raw(), err)
				}
			})
			r.POST("/", func(c *gin.Context) {
				if account := test.account(c); account != "42" {
					t.Errorf("the handler reads %q", account)
				}
				ok(c)
			})
			if status, text := send(t, newServer(t, r), http.MethodPost, "/", test.contentType, test.body); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

// WithMaxBody also limits a body that a middleware has bound.
func TestMaxBodyOfABoundBody(t *testing.T) {
	t.Parallel()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"account":"42"}`))
	if err := c.ShouldBindBodyWithJSON(&payment{}); err != nil {
		t.Fatal(err)
	}
	ginlock.Middleware(locktest.New(t).Locker, ginlock.JSONField("account"), core.WithMaxBody(15))(c)
	if c.Writer.Status() != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", c.Writer.Status())
	}
}

// The key is the value that the handler reads, with each setting of the engine for
// paths.
func TestKeyOfParamIsTheHandlersValue(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*gin.Engine)
		want map[string]string
	}{
		"as by default": {func(*gin.Engine) {}, map[string]string{"/42": "42", "/4%32": "42", "/a%2562": "a%62"}},
		"escaped, and unescaped": {func(r *gin.Engine) {
			r.UseEscapedPath = true
		}, map[string]string{"/42": "42", "/4%32": "42", "/a%2Fb": "a/b"}},
		"escaped": {func(r *gin.Engine) {
			r.UseEscapedPath, r.UnescapePathValues = true, false
		}, map[string]string{"/42": "42", "/4%32": "4%32", "/a%2562": "a%2562"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gin.New()
			test.set(r)
			r.GET("/:id", func(c *gin.Context) {
				read, err := ginlock.Param("id").Read(c)
				key := read.Raw()
				if key != c.Param("id") || err != nil {
					t.Errorf("key %q, %v; the handler reads %q", key, err, c.Param("id"))
				}
				c.String(http.StatusOK, "%s", key)
			})
			for path, want := range test.want {
				if w := call(t, r, http.MethodGet, path); w.Body.String() != want {
					t.Errorf("%s: %d %q, want %q", path, w.Code, w.Body, want)
				}
			}
		})
	}
}

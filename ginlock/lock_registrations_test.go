package ginlock_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/ginlock"
)

// account and tenant are what an application has.
type (
	account struct{ ID string }
	tenant  int
	role    string
)

func (t tenant) String() string { return "tenant-" + strconv.Itoa(int(t)) }

func (a *account) Key() string { return a.ID }

func isWrite(c *gin.Context) bool { return c.Request.Method != http.MethodGet }

func isRoute(c *gin.Context) bool { return c.FullPath() != "" }

func accountOf(c *gin.Context) (string, error) {
	if c.Param("id") == "all" {
		return "", core.ErrSkip
	}
	return c.Param("id"), nil
}

// errForbidden is an error with a status of its own.
type errForbidden struct{ error }

func (errForbidden) StatusCode() int { return http.StatusForbidden }

// application has an error handler as a method.
type application struct{ locks *core.Locker }

func (a *application) refused(c *gin.Context, err error) {
	if errors.Is(err, core.ErrBusy) {
		c.AbortWithStatusJSON(http.StatusLocked, gin.H{"error": "try again"})
		return
	}
	ginlock.WriteError(c, err)
}

// Registrations in all forms compile, without type arguments.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := core.Must(core.New(rdb, core.WithTTL(20*time.Second)))
	app := &application{locks}
	secret := []byte("a secret of the application")
	auth := gin.BasicAuth(gin.Accounts{"ada": "secret"})
	h := func(c *gin.Context) { c.Status(http.StatusNoContent) }
	r := gin.New()

	// One key.
	r.POST("/1/:id", ginlock.Middleware(locks, ginlock.Param("id")), h)
	r.POST("/2/*path", ginlock.Middleware(locks, ginlock.Param("path")), h)
	r.POST("/3", ginlock.Middleware(locks, ginlock.Header("X-Account")), h)
	r.GET("/4", ginlock.Middleware(locks, ginlock.Query("report"), core.WithWait(2*time.Second)), h)
	r.POST("/5", ginlock.Middleware(locks, ginlock.Cookie("session")), h)
	r.POST("/6", ginlock.Middleware(locks, ginlock.Form("account")), h)
	r.POST("/7", ginlock.Middleware(locks, ginlock.JSONField("account.id"), core.WithMaxBody(64<<10)), h)
	r.POST("/8", ginlock.Middleware(locks, ginlock.ClientIP(), core.WithFailOpen(true)), h)
	r.POST("/9", auth, ginlock.Middleware(locks, ginlock.Get(gin.AuthUserKey)), h)
	r.POST("/10", auth, ginlock.Middleware(locks, ginlock.GetAs("account", func(a *account) string { return a.ID })), h)
	r.POST("/11", auth, ginlock.Middleware(locks, ginlock.GetAs("account", (*account).Key)), h)
	r.POST("/12", auth, ginlock.Middleware(locks, ginlock.GetAs("role", func(r role) string { return string(r) })), h)
	r.POST("/13", ginlock.Middleware(locks, ginlock.Literal("nightly-report"), core.WithMaxHold(time.Minute)), h)

	// Functions of the application.
	r.POST("/14/:id", ginlock.Middleware(locks, core.KeyOf(accountOf)), h)
	r.POST("/15/:id", ginlock.Middleware(locks, core.KeyOf(func(c *gin.Context) (string, error) {
		id, err := strconv.ParseUint(c.Param("id"), 10, 64)
		return strconv.FormatUint(id, 10), err
	})), h)
	r.POST("/16", ginlock.Middleware(locks, core.Getter((*gin.Context).FullPath)), h)
	r.POST("/17", ginlock.Middleware(locks, core.Getter(func(c *gin.Context) string { return c.GetString("user") })), h)
	r.POST("/18", ginlock.Middleware(locks, core.KeyOf(func(c *gin.Context) (string, error) {
		if c.GetBool("guest") {
			return "", errForbidden{errors.New("guests may not")}
		}
		return c.GetString("user"), nil
	})), h)

	// core's functions around them.
	r.POST("/19/:id", ginlock.Middleware(locks, ginlock.Param("id").Named("account")), h)
	r.POST("/20/:id", ginlock.Middleware(locks, core.KeyOf(accountOf).Named("account")), h)
	r.POST("/21/:id", ginlock.Middleware(locks, core.Join(ginlock.Get("tenant"), ginlock.Param("id"))), h)
	r.POST("/22/:id", ginlock.Middleware(locks, core.Join(
		ginlock.Literal("transfer"),
		core.KeyOf(func(c *gin.Context) (string, error) { return tenant(c.GetInt("tenant")).String(), nil }),
		core.Getter(func(c *gin.Context) string { return strings.ToLower(c.Param("id")) }),
	)), h)
	r.POST("/22/payments", auth, ginlock.Middleware(locks, core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())), h)
	r.POST("/23", ginlock.Middleware(locks, core.First(ginlock.Header("X-Account"), ginlock.Query("account"))), h)
	r.Any("/24/:id", ginlock.Middleware(locks, ginlock.Param("id").When(isWrite)), h)
	r.Any("/25/:id", ginlock.Middleware(locks, core.KeyOf(func(c *gin.Context) (string, error) { return c.Param("id"), nil }).When(func(c *gin.Context) bool { return !c.IsWebsocket() })), h)
	r.POST("/26", ginlock.Middleware(locks, ginlock.JSONField("mail").Hashed().Named("mail")), h)
	r.POST("/27", ginlock.Middleware(locks, ginlock.Form("mail").HMAC(secret)), h)
	r.POST("/28", ginlock.Middleware(locks, core.First(
		ginlock.Get("user"), ginlock.ClientIP().Named("ip"),
	).Named("user")), h)

	// Several keys, and settings.
	r.POST("/29", ginlock.Middleware(locks, core.All(ginlock.JSONField("from").Named("account"), ginlock.JSONField("to").Named("account")), core.WithWait(2*time.Second)), h)
	r.POST("/30/:id", ginlock.Middleware(locks, core.All(ginlock.Param("id"), ginlock.Get("user"), core.KeyOf(func(c *gin.Context) (string, error) { return c.FullPath(), nil }))), h)
	r.POST("/31/:id", ginlock.Middleware(locks.With(core.WithTTL(time.Minute)), ginlock.Param("id"), core.WithRetryAfter(5*time.Second)), h)
	r.POST("/32/:id", ginlock.Middleware(locks, ginlock.Param("id"), ginlock.WithErrorHandler(app.refused)), h)
	r.POST("/33/:id", ginlock.Middleware(app.locks, ginlock.Param("id"), ginlock.WithErrorHandler(
		func(c *gin.Context, _ error) { c.String(http.StatusLocked, "wait a moment") },
	)), h)

	// Groups, the engine, and lists made beforehand.
	r.Group("/34", auth, ginlock.Middleware(locks, ginlock.Get("user").Named("user"))).POST("/me", h)
	group := r.Group("/35/:id")
	group.Use(auth, ginlock.Middleware(locks, ginlock.Param("id").Named("account")))
	group.DELETE("", h)
	r.NoRoute(ginlock.Middleware(locks, ginlock.Header("X-Account")), h)
	perUser := ginlock.Get("user").Named("user")
	patient := []core.Option{core.WithWait(5 * time.Second), ginlock.WithErrorHandler(app.refused)}
	gin.New().Use(auth, ginlock.Middleware(locks, perUser.When(isRoute), patient...))
	r.Match([]string{http.MethodPut, http.MethodPatch}, "/36", ginlock.Middleware(locks, perUser, slices.Clone(patient)...), h)

	// Idempotent endpoints.
	scoped := core.Join(ginlock.Get("user_id"), ginlock.IdempotencyKey())
	r.POST("/37", auth, ginlock.Idempotent(locks, scoped), h)
	r.POST("/38", auth, ginlock.Idempotent(locks, scoped, core.WithWait(2*time.Second), core.WithRetention(time.Hour),
		core.WithRerunUnknown(true), core.WithMaxAnswer(64<<10), ginlock.WithErrorHandler(app.refused)), h)
	r.Any("/39", ginlock.Idempotent(locks, ginlock.IdempotencyKey(), core.WithOptionalKey(),
		core.WithMethods(http.MethodPut, "delete"), core.WithReplayedHeaders("X-Payment")), h)
	r.POST("/40", ginlock.Idempotent(locks, ginlock.Header("X-Request-Key"), core.WithOptionalKey("X-Request-Key"),
		core.WithMaxBody(64<<10), core.WithStored(func(status int) bool { return status < 300 })), h)
	r.POST("/41", ginlock.Idempotent(locks, ginlock.JSONField("id"), core.WithoutFingerprint()), h)
	r.POST("/42", ginlock.Idempotent(locks, scoped, core.WithFingerprint(func(c *gin.Context) ([]byte, error) {
		return []byte(c.PostForm("amount")), nil
	})), ginlock.Middleware(locks, perUser), h)

	if n := len(r.Routes()); n < 42 {
		t.Errorf("%d routes", n)
	}
}

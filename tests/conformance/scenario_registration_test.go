package conformance

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/labstack/echo/v4"
	echov5 "github.com/labstack/echo/v5"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/echov5lock"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// Idempotent refuses a Locker whose locks are shared, as it refuses the options that make one.
func TestIdempotentRefusesSharedLocks(t *testing.T) {
	t.Parallel()
	for _, option := range []core.Option{core.WithPermits(2), core.WithShared(true)} {
		locks := adaptertest.UnusedLocker(t).With(option)
		const http = ": Idempotent needs a locker without WithPermits and WithShared: a request has its key alone"
		for want, register := range map[string]func(){
			"reqlock: nethttplock" + http: func() { nethttplock.Idempotent(locks, nethttplock.Literal("k")) },
			"reqlock: ginlock" + http:     func() { ginlock.Idempotent(locks, ginlock.Literal("k")) },
			"reqlock: echolock" + http:    func() { echolock.Idempotent(locks, echolock.Literal("k")) },
			"reqlock: fiberlock" + http:   func() { fiberlock.Idempotent(locks, fiberlock.Literal("k")) },
			"reqlock: grpclock: IdempotentUnaryServerInterceptor needs a locker without WithPermits and WithShared": func() {
				grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal("k"))
			},
		} {
			adaptertest.WantPanic(t, register, want)
		}
	}
}

// A middleware refuses an option of core that has no effect on its requests.
func TestOptionWithoutEffectIsRefused(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	echoKey := echolock.Literal("k")
	type register func(option core.Option)
	mere := map[string]register{
		"nethttplock: %s has no effect on Middleware": func(o core.Option) { nethttplock.Middleware(locks, nethttplock.Literal("k"), o) },
		"ginlock: %s has no effect on Middleware":     func(o core.Option) { ginlock.Middleware(locks, ginlock.Literal("k"), o) },
		"echolock: %s has no effect on Middleware":    func(o core.Option) { echolock.Middleware(locks, echoKey, o) },
		"fiberlock: %s has no effect on Middleware":   func(o core.Option) { fiberlock.Middleware(locks, fiberlock.Literal("k"), o) },
		"grpclock: %s has no effect on ServerOptions": func(o core.Option) { grpclock.ServerOptions(locks, grpclock.Literal("k"), o) },
		"grpclock: %s has no effect on StreamServerInterceptor": func(o core.Option) {
			grpclock.StreamServerInterceptor(locks, grpclock.Literal("k"), o)
		},
	}
	once := map[string]register{
		"nethttplock: %s has no effect on Idempotent": func(o core.Option) { nethttplock.Idempotent(locks, nethttplock.Literal("k"), o) },
		"ginlock: %s has no effect on Idempotent":     func(o core.Option) { ginlock.Idempotent(locks, ginlock.Literal("k"), o) },
		"echolock: %s has no effect on Idempotent":    func(o core.Option) { echolock.Idempotent(locks, echoKey, o) },
		"fiberlock: %s has no effect on Idempotent":   func(o core.Option) { fiberlock.Idempotent(locks, fiberlock.Literal("k"), o) },
		"grpclock: %s has no effect on IdempotentUnaryServerInterceptor": func(o core.Option) {
			grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal("k"), o)
		},
	}
	for name, test := range map[string]struct {
		option            core.Option
		refuses, accepted map[string]register
	}{
		"WithMinHold":        {core.WithMinHold(time.Minute), once, mere},
		"WithoutFingerprint": {core.WithoutFingerprint(), mere, once},
	} {
		for text, register := range test.refuses {
			want := "reqlock: " + strings.TrimSpace(strings.Replace(text, "%s", name, 1))
			adaptertest.WantPanic(t, func() { register(test.option) }, want)
		}
		for text, register := range test.accepted {
			if panicked := adaptertest.PanicText(func() { register(test.option) }); panicked != "" {
				t.Errorf("%s: %s: %s", name, text, panicked)
			}
		}
	}
}

// The observer learns once of a route that lacks the wildcard of a key.
func TestMisspeltWildcardIsReportedOnce(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(locks *core.Locker, once bool) http.Handler{
		"nethttplock: PathValue": func(locks *core.Locker, once bool) http.Handler {
			mux := http.NewServeMux()
			lock := nethttplock.Middleware(locks, nethttplock.PathValue("ID").Named("account"))
			if once {
				lock = nethttplock.Idempotent(locks, nethttplock.PathValue("ID").Named("account"))
			}
			done := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			mux.Handle("POST /accounts/{id}/transfer", lock(done))
			mux.Handle("POST /users/{ID}", lock(done))
			mux.Handle("POST /files/{ID...}", lock(done))
			mux.Handle("/", done)
			return mux
		},
		"ginlock: Param": func(locks *core.Locker, once bool) http.Handler {
			r := gin.New()
			lock := ginlock.Middleware(locks, ginlock.Param("ID").Named("account"))
			if once {
				lock = ginlock.Idempotent(locks, ginlock.Param("ID").Named("account"))
			}
			done := func(c *gin.Context) { c.Status(http.StatusOK) }
			r.Use(lock)
			r.POST("/accounts/:id/transfer", done)
			r.POST("/users/:ID", done)
			r.POST("/files/*ID", done)
			return r
		},
		"echolock: Param": func(locks *core.Locker, once bool) http.Handler {
			e := echo.New()
			lock := echolock.Middleware(locks, echolock.Param("ID").Named("account"))
			if once {
				lock = echolock.Idempotent(locks, echolock.Param("ID").Named("account"))
			}
			done := func(c echo.Context) error { return c.NoContent(http.StatusOK) }
			e.Use(lock)
			e.POST("/accounts/:id/transfer", done)
			e.POST("/users/:ID", done)
			e.Group("/files", lock).GET("/x", done) // unknown paths below it have the route /files/*
			return e
		},
		"echov5lock: Param": func(locks *core.Locker, once bool) http.Handler {
			e := echov5.New()
			lock := echov5lock.Middleware(locks, echov5lock.Param("ID").Named("account"))
			if once {
				lock = echov5lock.Idempotent(locks, echov5lock.Param("ID").Named("account"))
			}
			done := func(c *echov5.Context) error { return c.NoContent(http.StatusOK) }
			e.Use(lock)
			e.POST("/accounts/:id/transfer", done)
			e.POST("/users/:ID", done)
			e.Group("/files", lock).GET("/x", done) // unknown paths below it have the route /files/*
			return e
		},
		"fiberlock: Params": func(locks *core.Locker, once bool) http.Handler {
			app := fiber.New(fiber.Config{CaseSensitive: true})
			lock := fiberlock.Middleware(locks, fiberlock.Params("ID").Named("account"))
			if once {
				lock = fiberlock.Idempotent(locks, fiberlock.Params("ID").Named("account"))
			}
			done := func(fiber.Ctx) error { return nil }
			app.Post("/accounts/:id/transfer", lock, done)
			app.Post("/users/:ID", lock, done)
			app.Post("/files/:ID?", lock, done)
			return adaptor.FiberApp(app)
		},
	} {
		for _, once := range []bool{false, true} {
			var warned, refused []string
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				switch e.Kind {
				case core.Warned:
					warned = append(warned, e.Err.Error())
				case core.Refused:
					refused = append(refused, e.Err.Error())
				default:
				}
			}))
			handler := serve(locks.Locker, once)
			status := func(path string) int {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
				return w.Code
			}
			for range 3 {
				if got := status("/accounts/42/transfer"); got != http.StatusBadRequest {
					t.Errorf("%s: %d", name, got)
				}
			}
			adapter, function, _ := strings.Cut(name, ": ")
			route := "/accounts/:id/transfer"
			if function == "PathValue" {
				route = "POST /accounts/{id}/transfer"
			}
			call := function + `("ID")`
			want := `reqlock: no key: ` + call + `: the route "` + route + `" has no wildcard "ID"`
			if !slices.Equal(refused, []string{want, want, want}) {
				t.Errorf("%s: refused %q, want %q", name, refused, want)
			}
			want = "reqlock: " + adapter + ": " + call + ` refuses requests of the route "` + route + `", which has no wildcard of that name: write a name of the route`
			if got := status("/users/42"); got != http.StatusOK {
				t.Errorf("%s: with the wildcard: %d", name, got)
			}
			_, _, _ = status("/users/"), status("/files/"), status("/unknown") // no key, but no wrong name
			if !slices.Equal(warned, []string{want}) {
				t.Errorf("%s: warned %q, want %q", name, warned, want)
			}
		}
	}
}

package fiberlock_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/valyala/fasthttp"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	idempotent := func(opts ...core.Option) func() {
		return func() { fiberlock.Idempotent(locks, byKey, opts...) }
	}
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":     {func() { fiberlock.Idempotent(nil, byKey) }, "locker"},
		"zero Key":       {func() { fiberlock.Idempotent(locks, fiberlock.Key{}) }, "needs a key"},
		"bad setting":    {idempotent(core.WithRetention(1)), "WithRetention"},
		"All":            {func() { fiberlock.Idempotent(locks, core.All(byKey, literal)) }, "Idempotent has one key"},
		"FailOpen":       {idempotent(core.WithFailOpen(true)), "WithFailOpen"},
		"of Idempotent":  {func() { fiberlock.Middleware(locks, byKey, core.WithStored(func(int) bool { return true })) }, "WithStored has no effect on Middleware"},
		"of another one": {func() { fiberlock.Middleware(locks, byKey, adaptertest.ForeignOption()) }, adaptertest.ForeignOptionText},
		"no handler":     {func() { fiberlock.WithErrorHandler(nil) }, "WithErrorHandler needs a function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

// In app.Use and in groups, Fiber does not know the route yet, so all routes would share their keys.
func TestIdempotentIsRefusedWithoutARoute(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(app *fiber.App, once fiber.Handler){
		"Use":         func(app *fiber.App, once fiber.Handler) { app.Use(once) },
		"Use, a path": func(app *fiber.App, once fiber.Handler) { app.Use("/payments", once) },
		"Group":       func(app *fiber.App, once fiber.Handler) { app.Group("/payments", once) },
		"Group, behind a route that goes on": func(app *fiber.App, once fiber.Handler) {
			app.All("/*", func(c fiber.Ctx) error { return c.Next() })
			app.Group("/payments", once)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warned []string
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				if e.Kind == core.Warned {
					warned = append(warned, e.Err.Error())
				}
			}))
			app := fiber.New()
			register(app, fiberlock.Idempotent(locks.Locker, byKey))
			app.Post("/payments", mustNotRun(t))
			for range 2 {
				adaptertest.WantProblem(t, adaptertest.Pay(t, handlerOf(app), "/payments", "k", ""), http.StatusInternalServerError, "internal")
			}
			if len(warned) != 1 || !strings.HasPrefix(warned[0], "reqlock: fiberlock: Idempotent stands in app.Use or a group") {
				t.Errorf("warned %q", warned)
			}
		})
	}
}

// In a test of a program, c may have no route at all.
func TestIdempotentIsRefusedWithoutAServer(t *testing.T) {
	t.Parallel()
	c := fiber.New().AcquireCtx(&fasthttp.RequestCtx{})
	if err := fiberlock.Idempotent(adaptertest.UnusedLocker(t), byKey)(c); err != nil || c.Response().StatusCode() != http.StatusInternalServerError {
		t.Errorf("%v, %d", err, c.Response().StatusCode())
	}
}

// The route of an application that is mounted, and of one in a group, has its whole path.
func TestIdempotentRoutesAreIndependent(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	app := fiber.New()
	for _, name := range []string{"payments", "refunds"} {
		handler := func(c fiber.Ctx) error { return c.Status(http.StatusCreated).SendString(name) }
		mounted := fiber.New()
		mounted.Post("/", fiberlock.Idempotent(locks, byKey), handler)
		app.Use("/mounted/"+name, mounted)
		app.Group("/group/"+name).Post("/", fiberlock.Idempotent(locks, byKey), handler)
	}
	for _, path := range []string{"/mounted/", "/group/"} {
		for _, name := range []string{"payments", "refunds"} {
			if w := adaptertest.Pay(t, handlerOf(app), path+name, "k", ""); w.Body.String() != name {
				t.Errorf("%s: %d %s", path+name, w.Code, w.Body)
			}
		}
	}
}

// What Fiber sends after the handler is not stored, and its request never runs again.
func TestStreamsAreNotStored(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "receipt.txt")
	if err := os.WriteFile(file, []byte("paid"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, handler := range map[string]fiber.Handler{
		"SendStreamWriter": func(c fiber.Ctx) error {
			return c.SendStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("paid") })
		},
		"SetBodyStreamWriter": func(c fiber.Ctx) error {
			c.RequestCtx().SetBodyStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("paid") })
			return nil
		},
		"SendStream": func(c fiber.Ctx) error { return c.SendStream(strings.NewReader("paid")) },
		"SendFile":   func(c fiber.Ctx) error { return c.SendFile(file, fiber.SendFile{CacheDuration: -1}) }, // without a cache, which has a goroutine
		"Hijack": func(c fiber.Ctx) error {
			c.RequestCtx().HijackSetNoResponse(true)
			c.RequestCtx().Hijack(func(conn net.Conn) {
				_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npaid")
			})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := fiber.New()
			app.Post("/", fiberlock.Idempotent(locktest.New(t).Locker, byKey), handler)
			url, client := listen(t, app), newClient(t)
			pay := func() *httptest.ResponseRecorder {
				return send(t, client, newRequest(t, http.MethodPost, url, "", "Idempotency-Key: k"))
			}
			if w := pay(); w.Code != http.StatusOK || w.Body.String() != "paid" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			adaptertest.WantProblem(t, pay(), http.StatusConflict, "completed_unreplayable")
		})
	}
}

// An error that a handler returns is rendered inside Idempotent, by the ErrorHandler of its application. If
// it is not rendered, nothing is stored.
func TestReturnedErrors(t *testing.T) {
	t.Parallel()
	noFunds := fiber.NewError(http.StatusPaymentRequired, "no funds")
	render := func(c fiber.Ctx, err error) error {
		if err.Error() == "broken" {
			return err
		}
		return c.Status(http.StatusPaymentRequired).SendString("rendered inside: " + fmt.Sprint(c.Context().Err()))
	}
	for name, test := range map[string]struct {
		handler fiber.ErrorHandler
		err     error
		status  int
		body    string
		runs    int
	}{
		"the default":                    {nil, noFunds, 402, "no funds", 1},
		"an own one":                     {render, noFunds, 402, "rendered inside: <nil>", 1},
		"one that fails":                 {render, errors.New("broken"), 500, "Internal Server Error", 1},
		"one that does not render":       {func(fiber.Ctx, error) error { return nil }, noFunds, 200, "", 2},
		"not rendered, without a status": {func(fiber.Ctx, error) error { return nil }, errors.New("broken"), 200, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			mounted := fiber.New(fiber.Config{ErrorHandler: test.handler})
			mounted.Post("/", fiberlock.Idempotent(locktest.New(t).Locker, byKey), func(fiber.Ctx) error {
				runs++
				return test.err
			})
			app := fiber.New()
			app.Use(func(c fiber.Ctx) error {
				err := c.Next()
				if err != nil {
					t.Errorf("the middlewares outside see %v", err)
				}
				return err
			})
			app.Use("/mounted", mounted)
			first := adaptertest.Pay(t, handlerOf(app), "/mounted", "k", "")
			if first.Code != test.status || first.Body.String() != test.body {
				t.Errorf("%d %s", first.Code, first.Body)
			}
			again := adaptertest.Pay(t, handlerOf(app), "/mounted", "k", "")
			if runs != test.runs {
				t.Errorf("%d runs; the copy: %d %s", runs, again.Code, again.Body)
			}
		})
	}
}

// A recovery outside answers after a panic, with nothing of what the handler had set.
func TestRecoverAfterIdempotent(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Use(fiberrecover.New(), func(c fiber.Ctx) error {
		c.Set("X-Outside", "kept")
		return c.Next()
	})
	app.Post("/", fiberlock.Idempotent(locktest.New(t).Locker, byKey), func(c fiber.Ctx) error {
		c.Set("Location", "/payments/1")
		_ = c.Status(http.StatusCreated).SendString("paid")
		panic("crash")
	})
	w := adaptertest.Pay(t, handlerOf(app), "/", "k", "")
	if header := w.Header(); w.Code != http.StatusInternalServerError || w.Body.String() != "crash" || header.Get("Location") != "" || header.Get("X-Outside") != "kept" {
		t.Errorf("%d %v %s", w.Code, header, w.Body)
	}
}

// An answer without a body has the Content-Type that the handler has set, or none, and fasthttp corrects a
// wrong Content-Length. The replay is the same.
func TestHeadersThatFasthttpSets(t *testing.T) {
	t.Parallel()
	const text = fiber.MIMETextPlainCharsetUTF8
	for _, test := range []struct {
		status          int
		set, body, want string
	}{
		{http.StatusCreated, "", "", ""},
		{http.StatusCreated, "", "paid", text},
		{http.StatusCreated, text, "", text},
		{http.StatusNoContent, "", "dropped", ""},
		{http.StatusNoContent, text, "dropped", text},
	} {
		app := fiber.New()
		app.Post("/", fiberlock.Idempotent(locktest.New(t).Locker, byKey), func(c fiber.Ctx) error {
			if test.status == http.StatusCreated {
				c.Set("Content-Length", "9")
			}
			c.Set("Content-Type", test.set)
			return c.Status(test.status).SendString(test.body)
		})
		url, client := listen(t, app), newClient(t)
		for range 2 {
			w := send(t, client, newRequest(t, http.MethodPost, url, "", "Idempotency-Key: k"))
			if header := w.Header().Get("Content-Type"); w.Code != test.status || header != test.want || test.body != "dropped" && w.Body.String() != test.body {
				t.Errorf("%+v: %d %q %s", test, w.Code, header, w.Body)
			}
		}
	}
}

package conformance

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	fiberrecover "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/fiberlock"
)

func overFiber() *framework {
	return &framework{
		name:     "fiberlock",
		serve:    serveFiber,
		endpoint: fiberEndpoint,
		lacks: map[feature]string{
			disconnects: "fasthttp does not detect that a client has disconnected",
			earlyBodies: "fasthttp keeps the body, so that each middleware can read it",
			aborts:      "fasthttp knows no panic that is not a crash",
			streams:     "Fiber sends a stream after the handler",
			hijacking:   "Fiber gives a connection away after the handler",
			earlyHint:   "c.SendEarlyHints sends them without the writer of package net/http",
			wrapping:    "Fiber is not on net/http",
			writeLimits: "fasthttp reads bodies before the handler, and its WriteTimeout begins after the handler",
		},
		row:       httpRow,
		forbidden: outcome{status: http.StatusForbidden, code: "key_error"},
		hooked:    outcome{status: http.StatusTeapot},
	}
}

var ofFiber = adapter[fiber.Ctx]{
	header:      fiberlock.Header,
	idempotency: fiberlock.IdempotencyKey,
	body:        func() fiberlock.Key { return fiberlock.JSONField("id") },
	isRead:      fiberlock.IsRead,
	hook: func(h hook) core.Option {
		return fiberlock.WithErrorHandler(func(c fiber.Ctx, _ error) error {
			if h == ownHook {
				return c.Status(http.StatusTeapot).SendString(hookText)
			}
			return nil
		})
	},
}

// serveFiber registers the locks on the group and on the route.
func serveFiber(t *testing.T, locks *core.Locker, r route) server {
	t.Helper()
	stack := func(stack []lock) (handlers []any) {
		for _, l := range stack {
			handlers = append(handlers, fiberlock.Middleware(locks, ofFiber.lockKey(l), ofFiber.options(l)...))
		}
		return handlers
	}
	app := fiber.New()
	if r.recovers {
		app.Use(fiberrecover.New())
	}
	if r.outer != nil {
		app.Use(func(c fiber.Ctx) error {
			f := &fiberFrame{c: c}
			r.outer(f)
			return f.err
		})
	}
	handlers := append(stack(r.locks), func(c fiber.Ctx) error {
		call := &fiberCall{httpHandling: httpHandling{r: requestOf(c)}, c: c}
		r.handler(call)
		return call.err
	})
	app.Group(groupPath, stack(r.group)...).Add(routeMethods, routePath, handlers[0], handlers[1:]...)
	return httpServer{listenFiber(t, app)}
}

// A fiberApp is an http.Handler that startHTTP serves by Fiber's own server.
type fiberApp struct {
	http.Handler
	app *fiber.App
}

// listenFiber serves an application until the end of the test.
func listenFiber(t *testing.T, app *fiber.App) *liveServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := errors.Join(app.ShutdownWithTimeout(time.Minute), <-served); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	return &liveServer{URL: "http://" + listener.Addr().String(), Listener: listener, client: &http.Client{Transport: transport}}
}

// requestOf returns the request of a fiber.Ctx as one of net/http.
func requestOf(c fiber.Ctx) *http.Request {
	r, err := adaptor.ConvertRequest(c, true)
	if err != nil {
		panic(err) // the URL is malformed
	}
	return r.WithContext(c.Context())
}

type fiberFrame struct {
	c   fiber.Ctx
	err error
}

func (f *fiberFrame) Context() context.Context       { return f.c.Context() }
func (f *fiberFrame) SetContext(ctx context.Context) { f.c.SetContext(ctx) }
func (f *fiberFrame) Next()                          { f.err = f.c.Next() }

type fiberCall struct {
	httpHandling
	c   fiber.Ctx
	err error
}

func (c *fiberCall) Lease() (*core.Lease, bool) { return core.LeaseFromContext(c.c) }
func (c *fiberCall) Leases() []*core.Lease      { return core.LeasesFromContext(c.c) }
func (c *fiberCall) Reply(text string)          { c.err = c.c.SendString(text) }
func (c *fiberCall) Refuse(text string)         { c.err = fiber.NewError(http.StatusConflict, text) }

var fiberIdempotency = idempotency[fiber.Ctx]{
	request: requestOf,
	user:    core.Join(core.Getter(fiberUser), fiberlock.IdempotencyKey()),
	tenant:  core.Join(fiberlock.Host(), core.Getter(fiberUser), fiberlock.IdempotencyKey()),
}

func fiberUser(c fiber.Ctx) string {
	user, _, _ := requestOf(c).BasicAuth()
	return user
}

// fiberEndpoint registers Idempotent on the routes.
func fiberEndpoint(locks *core.Locker, e endpoint) http.Handler {
	app := fiber.New()
	if e.recovers {
		app.Use(fiberrecover.New())
	}
	if e.outer != nil {
		app.Use(func(c fiber.Ctx) error {
			w, r := newFiberWriter(c), requestOf(c)
			goesOn := e.outer(w, r)
			w.setHeader()
			c.SetContext(r.Context())
			if !goesOn {
				return nil
			}
			return c.Next()
		})
	}
	handlers := []any{fiberlock.Idempotent(locks, fiberIdempotency.key(e), fiberIdempotency.options(e)...)}
	if e.inside != nil {
		handlers = append(handlers, fiberlock.Idempotent(locks, fiberIdempotency.user, needless),
			fiberlock.Middleware(locks, ofFiber.lockKey(*e.inside), ofFiber.options(*e.inside)...))
	}
	handlers = append(handlers, func(c fiber.Ctx) (err error) {
		attempt, _ := core.AttemptFromContext(c)
		w := newFiberWriter(c)
		e.handler(invocation{
			ResponseWriter: w, r: requestOf(c), attempt: attempt,
			fail: func(status int, cause error) {
				if err = cause; status != 0 {
					err = errors.Join(fiber.NewError(status, "failed"), cause)
				}
			},
			bare: func(status int) { c.Status(status) },
		})
		w.setHeader()
		return err
	})
	for _, path := range []string{paymentsPath, refundsPath} {
		app.All(path, handlers[0], handlers[1:]...)
	}
	return fiberApp{adaptor.FiberApp(app), app}
}

// A fiberWriter lets handlers for net/http answer on a fiber.Ctx.
type fiberWriter struct {
	c      fiber.Ctx
	header http.Header
	begun  bool
}

func newFiberWriter(c fiber.Ctx) *fiberWriter {
	w := &fiberWriter{c: c, header: http.Header{}}
	for name, value := range c.Response().Header.All() {
		w.header.Add(string(name), string(value))
	}
	w.header.Del("Content-Type") // the default
	return w
}

func (w *fiberWriter) Header() http.Header { return w.header }

func (w *fiberWriter) WriteHeader(status int) {
	if !w.begun {
		w.setHeader()
		w.c.Status(status)
	}
}

func (w *fiberWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.c.Write(p)
}

// setHeader sets the header of the answer, once.
func (w *fiberWriter) setHeader() {
	if w.begun {
		return
	}
	w.begun = true
	for name := range w.header { // before the first Add: Del changes the order of other lines
		w.c.Response().Header.Del(name)
	}
	for name, values := range w.header {
		for _, value := range values {
			w.c.Response().Header.Add(name, value)
		}
	}
}

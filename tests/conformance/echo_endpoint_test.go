package conformance

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
)

var echoIdempotency = idempotency[echo.Context, echolock.Option]{
	request:     echo.Context.Request,
	user:        core.Join(core.Of(echoUser), echolock.IdempotencyKey()),
	tenant:      core.Join(echolock.Host(), core.Of(echoUser), echolock.IdempotencyKey()),
	methods:     echolock.WithMethods,
	optionalKey: echolock.WithOptionalKey,
	fingerprint: echolock.WithFingerprint,
	none:        echolock.WithoutFingerprint,
	maxBody:     echolock.WithMaxBody,
	uncertain:   echolock.WithUncertain,
	free:        echolock.FreeOnFailure,
	stored:      echolock.WithStored,
	replayed:    echolock.WithReplayedHeaders,
}

func echoUser(c echo.Context) string {
	user, _, _ := c.Request().BasicAuth()
	return user
}

// echoEndpoint registers Idempotent after the other middlewares.
func echoEndpoint(locks *core.Locker, e endpoint) http.Handler {
	server := echo.New()
	server.Logger.SetOutput(io.Discard)
	if e.recovers {
		server.Use(middleware.Recover())
	}
	if e.outer != nil {
		server.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				if !e.outer(c.Response(), c.Request()) {
					return nil
				}
				return next(c)
			}
		})
	}
	server.Use(echolock.Idempotent(locks, echoIdempotency.key(e), echoIdempotency.options(e)...))
	h := func(c echo.Context) (err error) {
		attempt, _ := echolock.AttemptFromContext(c)
		e.handler(invocation{
			ResponseWriter: c.Response(), r: c.Request(), attempt: attempt,
			fail: func(status int) { err = echo.NewHTTPError(status, "failed") },
			bare: func(status int) { err = c.NoContent(status) },
		})
		return err
	}
	server.Any(paymentsPath, h)
	server.Any(refundsPath, h)
	return server
}

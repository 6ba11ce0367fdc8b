package echolock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// Middlewares between Idempotent and the handler. What counts is how the request ended: as a
// refusal of a lock inside, by the end of a context, or by an answer.
func TestMiddlewaresInsideIdempotent(t *testing.T) {
	t.Parallel()
	const runs, replays, unknown = "a copy runs", "a copy gets the answer", "the outcome is unknown"
	tries := func(and func(c echo.Context, first error, next echo.HandlerFunc) error) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { return and(c, next(c), next) }
		}
	}
	asIs := tries(func(_ echo.Context, first error, _ echo.HandlerFunc) error { return first })
	charged := func(c echo.Context) error { return c.NoContent(http.StatusCreated) }
	ended := func(echo.Context) error {
		return echo.NewHTTPError(http.StatusConflict, "late").SetInternal(context.DeadlineExceeded)
	}
	broken := errors.New("the key failed")
	never := func(echo.Context) bool { return false }
	skipped := echolock.Middleware(locktest.New(t).Locker, literal.When(never))
	for name, test := range map[string]struct {
		inside  echo.MiddlewareFunc
		refusal error // of the lock, for the first try
		handler echo.HandlerFunc
		opts    []core.Option // of the lock
		want    string
	}{
		"a refusal":                     {asIs, core.ErrBusy, charged, nil, runs},
		"a refusal, 500":                {asIs, broken, charged, nil, runs},
		"a refusal, 400":                {asIs, core.ErrNoKey, charged, nil, runs},
		"an error handler, 423":         {asIs, broken, charged, answering(http.StatusLocked), runs},
		"an error handler, 422":         {asIs, broken, charged, answering(http.StatusUnprocessableEntity), runs},
		"an error handler, 500":         {asIs, core.ErrNoKey, charged, answering(http.StatusInternalServerError), unknown},
		"an error handler, WriteError":  {asIs, broken, charged, []core.Option{echolock.WithErrorHandler(echolock.WriteError)}, runs},
		"an error handler that runs it": {asIs, broken, charged, []core.Option{echolock.WithErrorHandler(func(c echo.Context, _ error) error { return charged(c) })}, replays},
		"a retry":                       {tries(func(c echo.Context, _ error, next echo.HandlerFunc) error { return next(c) }), broken, charged, nil, replays},
		"a retry that fails":            {tries(func(c echo.Context, _ error, next echo.HandlerFunc) error { return next(c) }), core.ErrBusy, failing, nil, unknown},
		"a retry, and the first error":  {tries(func(c echo.Context, first error, next echo.HandlerFunc) error { _ = next(c); return first }), broken, failing, nil, unknown},
		"a fallback":                    {tries(func(c echo.Context, _ error, _ echo.HandlerFunc) error { return charged(c) }), broken, charged, nil, replays},
		"a fallback that fails":         {tries(func(c echo.Context, _ error, _ echo.HandlerFunc) error { return failing(c) }), broken, charged, nil, unknown},
		"a fallback that fails, joined": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error { return errors.Join(failing(c), first) }), broken, charged, nil, unknown},
		"a fallback, and the refusal":   {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error { _ = charged(c); return first }), broken, charged, nil, replays},
		"a fallback that fails itself, and the refusal": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error {
			_ = c.String(http.StatusInternalServerError, "charged, perhaps")
			return first
		}), broken, charged, nil, unknown},
		"a wrapped refusal": {tries(func(_ echo.Context, first error, _ echo.HandlerFunc) error { return fmt.Errorf("locked: %w", first) }), broken, charged, nil, runs},
		"a fallback that fails, 502": {tries(func(_ echo.Context, first error, _ echo.HandlerFunc) error {
			return echo.NewHTTPError(http.StatusBadGateway).SetInternal(first)
		}), core.ErrBusy, charged, nil, unknown},
		"a fallback that fails, wrapped": {tries(func(_ echo.Context, first error, _ echo.HandlerFunc) error {
			return echo.NewHTTPError(http.StatusBadGateway).SetInternal(fmt.Errorf("first: %w", first))
		}), core.ErrBusy, charged, nil, unknown},
		"a fallback that fails, 500": {tries(func(_ echo.Context, first error, _ echo.HandlerFunc) error {
			return fmt.Errorf("failed after: %w", first)
		}), core.ErrBusy, charged, nil, unknown},
		"a lock that is skipped, and a refusal": {func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { _ = skipped(func(echo.Context) error { return nil })(c); return next(c) }
		}, core.ErrBusy, charged, nil, unknown},
		"a fallback that answers 400, as the refusal": {tries(func(echo.Context, error, echo.HandlerFunc) error { return echo.ErrBadRequest }), core.ErrNoKey, charged, nil, replays},
		"a fallback that answers 409, as the refusal": {tries(func(c echo.Context, _ error, _ echo.HandlerFunc) error { return c.NoContent(http.StatusConflict) }), core.ErrBusy, charged, nil, runs},
		"a fallback that fails with 409":              {tries(func(echo.Context, error, echo.HandlerFunc) error { return echo.NewHTTPError(http.StatusConflict) }), core.ErrBusy, charged, nil, unknown},
		"a refusal, 500, rendered inside":             {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error { c.Error(first); return nil }), broken, charged, nil, runs},
		"a refusal, rendered inside, and more": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error {
			c.Error(first)
			_, err := c.Response().Write([]byte("queued"))
			return err
		}), core.ErrBusy, charged, nil, unknown},
		"a refusal, rendered elsewhere": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error {
			rendered(c, first)
			return c.String(http.StatusCreated, "paid")
		}), core.ErrBusy, charged, nil, replays},
		"a refusal, rendered elsewhere, and a 500": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error {
			rendered(c, first)
			return c.String(http.StatusInternalServerError, "charged, perhaps")
		}), core.ErrBusy, charged, nil, unknown},
		"a refusal, 500, rendered into a buffer": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error {
			w := rendered(c, first)
			return c.JSONPretty(w.Code, json.RawMessage(w.Body.Bytes()), "  ")
		}), broken, charged, nil, runs},
		"a refusal, rendered as 202":              {asIs, errQueued, charged, nil, replays},
		"a refusal, rendered inside and returned": {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error { c.Error(first); return first }), core.ErrNoKey, charged, nil, runs},
		"a lock that is lost, and 503": {asIs, nil, func(c echo.Context) error {
			<-c.Request().Context().Done()
			return echo.ErrServiceUnavailable
		}, []core.Option{core.WithMaxHold(time.Millisecond)}, unknown},
		"a refusal, rendered inside":     {tries(func(c echo.Context, first error, _ echo.HandlerFunc) error { c.Error(first); return nil }), core.ErrNoKey, charged, nil, runs},
		"a refusal that the key answers": {asIs, errAnswered, charged, nil, runs},
		"an answer while a key answers elsewhere": {func(echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				key := core.KeyOf(func(part echo.Context) (string, error) {
					_ = c.String(http.StatusCreated, "paid")
					return "", errors.Join(part.NoContent(http.StatusCreated), errAnswered)
				})
				part := c.Echo().NewContext(c.Request(), httptest.NewRecorder())
				_ = echolock.Middleware(locktest.New(t).Locker, key)(charged)(part)
				return nil
			}
		}, nil, charged, nil, replays},
		"a success that nobody renders": {asIs, nil, func(echo.Context) error { return errRendered }, nil, unknown},
		"an error handler, not comparable": {asIs, broken, charged, []core.Option{echolock.WithErrorHandler(func(echo.Context, error) error {
			return fieldErrors{"locked"}
		})}, runs},
		"a handler, a redirect by a timeout": {asIs, nil, func(echo.Context) error {
			return echo.NewHTTPError(http.StatusSeeOther).SetInternal(context.DeadlineExceeded)
		}, nil, unknown},
		"a handler, 409 by a timeout as its Message": {asIs, nil, func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, context.DeadlineExceeded) }, nil, unknown},
		"a handler, 409 by a timeout":                {asIs, nil, ended, nil, unknown},
		"a ContextTimeout, and a refusal":            {middleware.ContextTimeout(time.Minute), core.ErrBusy, charged, nil, runs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			defer locks.Hold("held")()
			passes, refusal := 0, test.refusal
			key := core.KeyOf(func(c echo.Context) (string, error) {
				refused := refusal
				refusal = nil
				if errors.Is(refused, errAnswered) {
					_ = c.NoContent(http.StatusInternalServerError)
				}
				if errors.Is(refused, core.ErrBusy) {
					return "held", nil
				}
				return "account", refused
			})
			counted := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error { passes++; return next(c) }
			}
			e := newEcho()
			e.HTTPErrorHandler = func(err error, c echo.Context) {
				switch {
				case errors.Is(err, errRendered): // renders nothing
				case errors.Is(err, errQueued):
					_ = c.NoContent(http.StatusAccepted)
				case errors.As(err, &fieldErrors{}):
					_ = c.NoContent(http.StatusUnprocessableEntity)
				default:
					e.DefaultHTTPErrorHandler(err, c)
				}
			}
			e.POST("/", test.handler, echolock.Idempotent(locks.Locker, byKey), counted, test.inside,
				echolock.Middleware(locks.Locker, key, test.opts...))
			first := pay(t, e, "/", "k", "")
			later := pay(t, e, "/", "k", "")
			got := unknown
			switch {
			case passes == 2:
				got = runs
			case later.Header().Get("Idempotent-Replayed") != "":
				got = replays
			}
			if got != test.want {
				t.Errorf("%s, want %s: the answers are %d %s and %d %s", got, test.want, first.Code, first.Body, later.Code, later.Body)
			}
		})
	}
}

// rendered returns what Echo renders of an error. It is no part of the answer.
func rendered(c echo.Context, err error) *httptest.ResponseRecorder {
	response, w := c.Response(), httptest.NewRecorder()
	c.SetResponse(echo.NewResponse(w, c.Echo()))
	defer c.SetResponse(response)
	c.Error(err)
	return w
}

// An HTTPErrorHandler of the application renders a refusal in its own way. The net/http handler
// around the application sees the status.
func TestOwnErrorHandlerInsideNetHTTP(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	free := locks.Hold("held")
	e := newEcho()
	e.HTTPErrorHandler = func(_ error, c echo.Context) { _ = c.String(http.StatusConflict, "later") }
	e.POST("/", func(c echo.Context) error { return c.NoContent(http.StatusCreated) },
		echolock.Middleware(locks.Locker, echolock.Literal("held")))
	server := nethttplock.Idempotent(locks.Locker, nethttplock.Literal("k"))(e)
	first := adaptertest.Pay(t, server, "/", "k", "")
	free()
	if later := adaptertest.Pay(t, server, "/", "k", ""); first.Code != http.StatusConflict || later.Code != http.StatusCreated {
		t.Errorf("%d %s, and a copy gets %d %s", first.Code, first.Body, later.Code, later.Body)
	}
}

var (
	errAnswered = errors.New("the key has answered")
	errQueued   = errors.New("the key failed, and the application queues the request")
	errRendered = echo.NewHTTPError(http.StatusCreated)
)

// fieldErrors are an error that cannot be compared.
type fieldErrors []string

// Error returns the first one.
func (e fieldErrors) Error() string { return e[0] }

// A ContextTimeout inside Idempotent makes a 503 of the end of its context.
func TestContextTimeoutInsideIdempotent(t *testing.T) {
	t.Parallel()
	e := newEcho()
	runs := 0
	e.POST("/", func(c echo.Context) error {
		runs++
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	}, echolock.Idempotent(locktest.New(t).Locker, byKey), middleware.ContextTimeout(20*time.Millisecond))
	first := pay(t, e, "/", "k", "")
	if later := pay(t, e, "/", "k", ""); first.Code != http.StatusServiceUnavailable || later.Code != http.StatusConflict || runs != 1 {
		t.Errorf("%d runs: %d %s and %d %s", runs, first.Code, first.Body, later.Code, later.Body)
	}
}

// failing is a handler that fails in the middle.
func failing(echo.Context) error { return echo.NewHTTPError(http.StatusBadGateway, "charged, perhaps") }

// answering returns the options of an error handler that answers with the status.
func answering(status int) []core.Option {
	return []core.Option{echolock.WithErrorHandler(func(echo.Context, error) error { return echo.NewHTTPError(status, "locked") })}
}

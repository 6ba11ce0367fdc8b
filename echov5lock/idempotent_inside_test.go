package echov5lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echov5lock"
)

// Middlewares between Idempotent and the handler. What counts is how the request ended: as a
// refusal of a lock inside, by the end of a context, or by an answer.
func TestMiddlewaresInsideIdempotent(t *testing.T) {
	t.Parallel()
	const runs, replays, unknown = "a copy runs", "a copy gets the answer", "the outcome is unknown"
	tries := func(and func(c *echo.Context, first error, next echo.HandlerFunc) error) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error { return and(c, next(c), next) }
		}
	}
	asIs := tries(func(_ *echo.Context, first error, _ echo.HandlerFunc) error { return first })
	charged := func(c *echo.Context) error { return c.NoContent(http.StatusCreated) }
	failing := func(*echo.Context) error { return echo.NewHTTPError(http.StatusBadGateway, "charged, perhaps") }
	answering := func(status int) []core.Option {
		return []core.Option{echov5lock.WithErrorHandler(func(*echo.Context, error) error { return echo.NewHTTPError(status, "locked") })}
	}
	render := func(c *echo.Context, err error) { c.Echo().HTTPErrorHandler(c, err) }
	broken, errAnswered := errors.New("the key failed"), errors.New("the key has answered")
	for name, test := range map[string]struct {
		inside  echo.MiddlewareFunc
		refusal error // of the lock, for the first try
		handler echo.HandlerFunc
		opts    []core.Option // of the lock
		want    string
	}{
		"a refusal":                      {asIs, core.ErrBusy, charged, nil, runs},
		"a refusal, 500":                 {asIs, broken, charged, nil, runs},
		"a refusal of the key's":         {asIs, echo.ErrBadGateway, charged, nil, runs},
		"a refusal that the key answers": {asIs, errAnswered, charged, nil, runs},
		"an error handler, 423":          {asIs, broken, charged, answering(http.StatusLocked), runs},
		"an error handler, 500":          {asIs, core.ErrNoKey, charged, answering(http.StatusInternalServerError), unknown},
		"an error handler, WriteError":   {asIs, broken, charged, []core.Option{echov5lock.WithErrorHandler(echov5lock.WriteError)}, runs},
		"an error handler that runs it":  {asIs, broken, charged, []core.Option{echov5lock.WithErrorHandler(func(c *echo.Context, _ error) error { return charged(c) })}, replays},
		"a retry":                        {tries(func(c *echo.Context, _ error, next echo.HandlerFunc) error { return next(c) }), broken, charged, nil, replays},
		"a retry, and the first error":   {tries(func(c *echo.Context, first error, next echo.HandlerFunc) error { _ = next(c); return first }), broken, failing, nil, unknown},
		"a fallback":                     {tries(func(c *echo.Context, _ error, _ echo.HandlerFunc) error { return charged(c) }), broken, charged, nil, replays},
		"a fallback that fails":          {tries(func(c *echo.Context, _ error, _ echo.HandlerFunc) error { return failing(c) }), broken, charged, nil, unknown},
		"a wrapped refusal":              {tries(func(_ *echo.Context, first error, _ echo.HandlerFunc) error { return fmt.Errorf("locked: %w", first) }), broken, charged, nil, runs},
		"a refusal in another error": {tries(func(_ *echo.Context, first error, _ echo.HandlerFunc) error {
			return echo.ErrBadGateway.Wrap(first)
		}), core.ErrBusy, charged, nil, unknown},
		"a refusal, rendered inside":              {tries(func(c *echo.Context, first error, _ echo.HandlerFunc) error { render(c, first); return nil }), broken, charged, nil, runs},
		"a refusal, rendered inside and returned": {tries(func(c *echo.Context, first error, _ echo.HandlerFunc) error { render(c, first); return first }), core.ErrNoKey, charged, nil, runs},
		"a refusal, rendered inside, and more": {tries(func(c *echo.Context, first error, _ echo.HandlerFunc) error {
			render(c, first)
			_, err := c.Response().Write([]byte("queued"))
			return err
		}), core.ErrBusy, charged, nil, unknown},
		"a refusal, 500, rendered into a buffer": {tries(func(c *echo.Context, first error, _ echo.HandlerFunc) error {
			response, w := c.Response(), httptest.NewRecorder()
			c.SetResponse(echo.NewResponse(w, c.Logger()))
			render(c, first)
			c.SetResponse(response)
			return c.JSONPretty(w.Code, json.RawMessage(w.Body.Bytes()), "  ")
		}), broken, charged, nil, runs},
		"a refusal behind RequestLogger":         {middleware.RequestLogger(), broken, charged, nil, runs},
		"an answer of the key behind a BodyDump": {middleware.BodyDump(func(*echo.Context, []byte, []byte, error) {}), errAnswered, charged, nil, runs},
		"a refusal behind Gzip":                  {middleware.Gzip(), core.ErrBusy, charged, nil, runs},
		"an answer of the key behind Gzip":       {middleware.Gzip(), errAnswered, charged, nil, unknown}, // Gzip sends it after the refusal
		"a refusal behind a ContextTimeout":      {middleware.ContextTimeout(time.Minute), core.ErrBusy, charged, nil, runs},
		"a lock that is lost, and 503": {asIs, nil, func(c *echo.Context) error {
			<-c.Request().Context().Done()
			return echo.ErrServiceUnavailable
		}, []core.Option{core.WithMaxHold(time.Millisecond)}, unknown},
		"a 409 by a timeout": {asIs, nil, func(*echo.Context) error {
			return echo.HTTPError{Code: http.StatusConflict}.Wrap(context.DeadlineExceeded)
		}, nil, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			defer locks.Hold("held")()
			passes, refusal := 0, test.refusal
			key := core.KeyOf(func(c *echo.Context) (string, error) {
				refused := refusal
				refusal = nil
				if errors.Is(refused, errAnswered) {
					_ = c.String(http.StatusInternalServerError, "the key's")
				}
				if errors.Is(refused, core.ErrBusy) {
					return "held", nil
				}
				return "account", refused
			})
			counted := func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error { passes++; return next(c) }
			}
			e := newEcho()
			e.POST("/", test.handler, echov5lock.Idempotent(locks.Locker, byKey), counted, test.inside,
				echov5lock.Middleware(locks.Locker, key, test.opts...))
			var answers []*httptest.ResponseRecorder
			for range 2 {
				r := newRequest(t, http.MethodPost, "/", "")
				r.Header.Set("Idempotency-Key", "k")
				r.Header.Set("Accept-Encoding", "gzip")
				answers = append(answers, serve(e, r))
			}
			got := unknown
			switch {
			case passes == 2:
				got = runs
			case answers[1].Header().Get("Idempotent-Replayed") != "":
				got = replays
			}
			if got != test.want {
				t.Errorf("%s, want %s: the answers are %d %s and %d %s", got, test.want, answers[0].Code, answers[0].Body, answers[1].Code, answers[1].Body)
			}
		})
	}
}

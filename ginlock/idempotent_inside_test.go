package ginlock_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// Handlers and locks behind Idempotent. What counts is how the request ended: as a refusal of
// a lock inside, by the end of a context, or by an answer.
func TestHandlersInsideIdempotent(t *testing.T) {
	t.Parallel()
	const runs, replays, unknown = "a copy runs", "a copy gets the answer", "the outcome is unknown"
	charged := func(c *gin.Context) { c.String(http.StatusCreated, "paid") }
	late := func(answer gin.HandlerFunc) gin.HandlerFunc {
		return func(c *gin.Context) {
			_ = c.Error(context.DeadlineExceeded)
			_ = c.Error(errors.New("for the log"))
			answer(c)
		}
	}
	unavailable := func(c *gin.Context) { c.String(http.StatusServiceUnavailable, "late") }
	after := func(handler gin.HandlerFunc) gin.HandlerFunc {
		return func(c *gin.Context) { c.Next(); handler(c) }
	}
	asIs := after(func(*gin.Context) {})
	gone := func(c *gin.Context) {
		ctx, cancel := context.WithCancel(c.Request.Context())
		cancel()
		c.Request = c.Request.WithContext(ctx)
	}
	badGateway := func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	// proxied passes the request on to no service.
	proxied := func(wrapped bool, errorHandler func(http.ResponseWriter, *http.Request, error)) gin.HandlerFunc {
		proxy := nethttplock.ReverseProxy(&httputil.ReverseProxy{
			ErrorHandler: errorHandler,
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "service.invalid"}) },
			Transport:    &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no service") }},
		})
		return func(c *gin.Context) {
			w := http.ResponseWriter(c.Writer)
			if wrapped {
				w = struct{ http.ResponseWriter }{w}
			}
			proxy.ServeHTTP(w, c.Request)
			if !c.Writer.Written() {
				c.String(http.StatusBadGateway, "no service")
			}
			c.Abort()
		}
	}
	answering := func(status int) []core.Option {
		return []core.Option{ginlock.WithErrorHandler(func(c *gin.Context, _ error) { c.AbortWithStatus(status) })}
	}
	broken := errors.New("the key failed")
	for name, test := range map[string]struct {
		inside  gin.HandlerFunc
		refusal error // of the lock
		handler gin.HandlerFunc
		opts    []core.Option // of the lock
		want    string
	}{
		"a refusal":                                    {asIs, core.ErrBusy, charged, nil, runs},
		"a refusal, 500":                               {asIs, broken, charged, nil, runs},
		"a refusal, 400":                               {asIs, core.ErrNoKey, charged, nil, runs},
		"an error handler, 422":                        {asIs, broken, charged, answering(http.StatusUnprocessableEntity), runs},
		"an error handler, 500":                        {asIs, core.ErrNoKey, charged, answering(http.StatusInternalServerError), unknown},
		"an error handler, WriteError":                 {asIs, broken, charged, []core.Option{ginlock.WithErrorHandler(ginlock.WriteError)}, runs},
		"an error handler that runs it":                {asIs, broken, charged, []core.Option{ginlock.WithErrorHandler(func(c *gin.Context, _ error) { charged(c) })}, replays},
		"an answer before the refusal":                 {func(c *gin.Context) { c.String(http.StatusUnprocessableEntity, "invalid") }, core.ErrBusy, charged, nil, replays},
		"an error handler, only a status":              {after(func(c *gin.Context) { c.JSON(-1, "refused") }), core.ErrBusy, charged, []core.Option{ginlock.WithErrorHandler(func(c *gin.Context, _ error) { c.Status(http.StatusBadRequest) })}, runs},
		"an error handler, 423, and a fallback behind": {after(func(c *gin.Context) { _, _ = c.Writer.WriteString("queued") }), core.ErrBusy, charged, answering(http.StatusLocked), unknown},
		"a client that has gone":                       {gone, nil, charged, nil, runs},
		"a client that has gone, WriteError":           {gone, nil, charged, []core.Option{ginlock.WithErrorHandler(ginlock.WriteError)}, runs},
		"a lock that is lost, and rendered": {after(func(c *gin.Context) { c.JSON(-1, gin.H{"error": "lost"}) }), nil, func(c *gin.Context) {
			<-c.Request.Context().Done()
		}, []core.Option{core.WithMaxHold(time.Millisecond)}, unknown},
		"a timeout below another error": {asIs, nil, func(c *gin.Context) {
			_ = c.Error(errors.Join(&url.Error{Err: errors.New("refused")}, &url.Error{Err: os.ErrDeadlineExceeded}))
			c.Status(http.StatusServiceUnavailable)
		}, nil, unknown},
		"a lock that is lost, and 503": {asIs, nil, func(c *gin.Context) {
			<-c.Request.Context().Done()
			c.Status(http.StatusServiceUnavailable)
		}, []core.Option{core.WithMaxHold(time.Millisecond)}, unknown},
		"a fallback behind the refusal":      {after(charged), core.ErrBusy, charged, nil, unknown},
		"errors rendered behind the refusal": {after(func(c *gin.Context) { c.JSON(http.StatusInternalServerError, "failed") }), core.ErrBusy, charged, nil, unknown},
		"a deadline that sets 504 behind its refusal": {func(c *gin.Context) {
			ctx, cancel := context.WithDeadline(c.Request.Context(), time.Now())
			defer cancel()
			c.Request = c.Request.WithContext(ctx)
			c.Next()
			c.AbortWithStatus(http.StatusGatewayTimeout)
		}, nil, charged, nil, runs},
		"504 behind another refusal":     {after(func(c *gin.Context) { c.AbortWithStatus(http.StatusGatewayTimeout) }), core.ErrBusy, charged, nil, unknown},
		"a refusal that the key answers": {asIs, errAnswered, charged, nil, runs},
		"errors rendered if there is no answer": {after(func(c *gin.Context) {
			if !c.Writer.Written() {
				c.JSON(http.StatusInternalServerError, "failed")
			}
		}), core.ErrBusy, charged, nil, runs},
		"a proxy that reaches no service":                     {proxied(false, badGateway), nil, charged, nil, runs},
		"a proxy that reaches no service, and another writer": {proxied(true, badGateway), nil, charged, nil, runs},
		"a proxy that leaves its error":                       {proxied(false, func(http.ResponseWriter, *http.Request, error) {}), nil, charged, nil, unknown},
		"a timeout, answered with 503":                        {asIs, nil, late(unavailable), nil, unknown},
		"a timeout, answered with 201":                        {asIs, nil, late(charged), nil, replays},
		"503":                                                 {asIs, nil, unavailable, nil, runs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			defer locks.Hold("held")()
			passes := 0
			key := core.KeyOf(func(c *gin.Context) (string, error) {
				if errors.Is(test.refusal, errAnswered) {
					c.String(http.StatusInternalServerError, "no key")
				}
				if errors.Is(test.refusal, core.ErrBusy) {
					return "held", nil
				}
				return "account", test.refusal
			})
			engine := gin.New()
			engine.POST("/", ginlock.Idempotent(locks.Locker, byKey), func(*gin.Context) { passes++ }, test.inside,
				ginlock.Middleware(locks.Locker, key, test.opts...), test.handler)
			first := adaptertest.Pay(t, engine, "/", "k", "")
			later := adaptertest.Pay(t, engine, "/", "k", "")
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

var errAnswered = errors.New("the key has answered")

package echolock_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
)

func TestIdempotentRoutesOfTwoHostsDiffer(t *testing.T) {
	t.Parallel()
	e := newEcho()
	locks := locktest.New(t).Locker
	runs := map[string]int{}
	for _, host := range []string{"pay.example", "refund.example"} {
		e.Host(host).POST("/orders", func(c echo.Context) error {
			runs[host]++
			return c.String(http.StatusCreated, host)
		}, echolock.Idempotent(locks, byKey))
	}
	for _, host := range []string{"pay.example", "refund.example"} {
		r := newRequest(t, http.MethodPost, "/orders", "7")
		r.Host = host
		r.Header.Set("Idempotency-Key", "k")
		w := serve(e, r)
		t.Log(w.Code, w.Body)
		if runs[host] != 1 {
			t.Errorf("%s ran %d times, and its client got %d %q", host, runs[host], w.Code, w.Body)
		}
	}
}

// A timeout outside answers as without Idempotent.
func TestIdempotentContextTimeoutOutside(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	var codes []int
	for _, idem := range []bool{false, true} {
		e := newEcho()
		e.Use(middleware.ContextTimeout(20 * time.Millisecond))
		var mw []echo.MiddlewareFunc
		if idem {
			mw = append(mw, echolock.Idempotent(locks, byKey, core.WithClientCancel(true)))
		}
		e.POST("/", func(c echo.Context) error {
			<-c.Request().Context().Done()
			return c.Request().Context().Err()
		}, mw...)
		codes = append(codes, pay(t, e, "/", "k", "").Code)
	}
	if codes[0] != codes[1] {
		t.Errorf("without Idempotent %d, with it %d", codes[0], codes[1])
	}
}

// If a handler returns the error of its ended context, the outcome is unknown.
func TestIdempotentContextEndedWithError(t *testing.T) {
	t.Parallel()
	e := newEcho()
	runs := 0
	e.POST("/", func(c echo.Context) error {
		runs++
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	}, echolock.Idempotent(locktest.New(t).Locker, byKey, core.WithClientCancel(true)))
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the first has to begin within it
		r := newRequest(t, http.MethodPost, "/", "").WithContext(ctx)
		r.Header.Set("Idempotency-Key", "k")
		w := serve(e, r)
		cancel()
		t.Log(w.Code, w.Body)
	}
	if runs != 1 {
		t.Errorf("ran %d times", runs)
	}
}

// An empty body is the same request with and without compression, although one of them has a
// Content-Length.
func TestIdempotentCompressedEmptyBody(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(middleware.Decompress())
	runs := 0
	e.POST("/", func(c echo.Context) error { runs++; return c.String(200, "paid") }, echolock.Idempotent(locktest.New(t).Locker, byKey))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_ = z.Close()
	for _, body := range []string{b.String(), ""} {
		r := newRequest(t, http.MethodPost, "/", body)
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("Idempotency-Key", "k")
		if w := serve(e, r); w.Code != http.StatusOK || runs != 1 {
			t.Errorf("%d bytes: %d %s after %d runs", len(body), w.Code, w.Body, runs)
		}
	}
}

// With Gzip outside, a copy gets the first answer.
func TestIdempotentGzipOutside(t *testing.T) {
	t.Parallel()
	e := newEcho()
	e.Use(middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 10}))
	e.POST("/", func(c echo.Context) error {
		return c.String(200, c.QueryParam("b"))
	}, echolock.Idempotent(locktest.New(t).Locker, byKey))
	for _, path := range []string{"/?b=short", "/?b=loooooooooooooooooooooooooooooong", "/"} {
		var bodies []string
		var enc []string
		for range 2 {
			r := newRequest(t, http.MethodPost, path, "")
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set("Idempotency-Key", path)
			w := serve(e, r)
			bodies = append(bodies, w.Body.String())
			enc = append(enc, w.Header().Get("Content-Encoding"))
		}
		if bodies[0] != bodies[1] || enc[0] != enc[1] {
			t.Errorf("%q %q", bodies, enc)
		}
	}
}

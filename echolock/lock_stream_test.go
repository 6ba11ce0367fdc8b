package echolock_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// get sends a request over a real connection. The test closes the answer.
func get(t *testing.T, e *echo.Echo) *http.Response {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// The handler gets Echo's own Response with the server's own writer.
func TestResponseIsNotWrapped(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	var response *echo.Response
	var writer http.ResponseWriter
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			response, writer = c.Response(), c.Response().Writer
			return next(c)
		}
	})
	e.GET("/", func(c echo.Context) error {
		if c.Response() != response || c.Response().Writer != writer {
			t.Errorf("the handler got a %T around a %T", c.Response(), c.Response().Writer)
		}
		if err := http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("ResponseController: %v", err)
		}
		return ok(c)
	}, echolock.Middleware(locks.Locker, literal))
	if answer := get(t, e); answer.StatusCode != http.StatusNoContent { //nolint:bodyclose // get does
		t.Errorf("status %d", answer.StatusCode)
	}
}

// Server-sent events reach the client one by one, and the lock is held until the
// handler returns.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	more := make(chan struct{})
	e.GET("/", func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderContentType, "text/event-stream")
		for n := range 3 {
			if _, err := fmt.Fprintf(c.Response(), "data: %d\n\n", n); err != nil {
				return err
			}
			c.Response().Flush()
			<-more
		}
		return nil
	}, echolock.Middleware(locks.Locker, literal))
	events := bufio.NewReader(get(t, e).Body) //nolint:bodyclose // get does
	for n := range 3 {
		line, err := events.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", n); line != want || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		_, _ = events.ReadString('\n')
		if adaptertest.IsFree(t, locks.Locker) {
			t.Errorf("the lock is free after event %d", n)
		}
		more <- struct{}{}
	}
	if rest, err := io.ReadAll(events); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	suite.Eventually(t, "the lock is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

// c.Stream holds the lock to its end.
func TestStream(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	source, sink := io.Pipe()
	e.GET("/", func(c echo.Context) error {
		return c.Stream(http.StatusOK, "text/plain", source)
	}, echolock.Middleware(locks.Locker, literal))
	go func() {
		defer func() { _ = sink.Close() }()
		_, _ = io.WriteString(sink, "first ")
		if adaptertest.IsFree(t, locks.Locker) {
			t.Error("the lock is free in the middle of the stream")
		}
		_, _ = io.WriteString(sink, "second")
	}()
	if text, err := io.ReadAll(get(t, e).Body); string(text) != "first second" || err != nil { //nolint:bodyclose // get does
		t.Errorf("%q, %v", text, err)
	}
	suite.Eventually(t, "the lock is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

// A handler can hijack the connection, and the lock is held until it returns.
func TestHijack(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	e := newEcho()
	e.GET("/", func(c echo.Context) error {
		conn, _, err := c.Response().Hijack()
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if adaptertest.IsFree(t, locks.Locker) {
			t.Error("the lock is free on a hijacked connection")
		}
		_, err = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return err
	}, echolock.Middleware(locks.Locker, literal))
	if answer := get(t, e); answer.StatusCode != http.StatusTeapot { //nolint:bodyclose // get does
		t.Errorf("status %d", answer.StatusCode)
	}
	suite.Eventually(t, "the lock is free", func() bool { return adaptertest.IsFree(t, locks.Locker) })
}

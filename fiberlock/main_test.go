package fiberlock_test

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/reqlock/reqlock/fiberlock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m, suite.Fasthttp()...) }

// theKey is the key of requests if a test gives no other.
const theKey = adaptertest.Key

var (
	// literal locks theKey.
	literal = fiberlock.Literal(theKey)
	// byKey is a key that the client chooses.
	byKey = fiberlock.IdempotencyKey()
)

// ok is a handler that answers.
func ok(c fiber.Ctx) error { return c.SendString("done") }

// mustNotRun is the handler of requests that are refused.
func mustNotRun(t *testing.T) fiber.Handler {
	t.Helper()
	return func(fiber.Ctx) error { t.Error("the handler has run"); return nil }
}

// handlerOf returns an application as a handler of net/http, without a server.
func handlerOf(app *fiber.App) http.Handler { return adaptor.FiberApp(app) }

// listen serves an application until the end of the test. It returns the URL.
func listen(t *testing.T, app *fiber.App) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		if err := app.ShutdownWithTimeout(time.Minute); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Listener: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}

// newClient returns a client with connections of its own.
func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// newRequest returns a request with headers, given as "name: value".
func newRequest(t *testing.T, method, url, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// send sends a request, and returns the answer.
func send(t *testing.T, client *http.Client, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return recorded(answer)
}

// answerOf sends a request to an application that does not listen, and returns the answer.
func answerOf(app *fiber.App, r *http.Request) *httptest.ResponseRecorder {
	answer, err := app.Test(r, fiber.TestConfig{Timeout: time.Minute})
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return recorded(answer)
}

// recorded reads an answer.
func recorded(answer *http.Response) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(err)
	}
	return w
}

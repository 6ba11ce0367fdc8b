package fiberlock

import (
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"
)

// A writer is an http.ResponseWriter on the answer of a request, by which package adapter replays and
// refuses.
type writer struct {
	c      fiber.Ctx
	header http.Header
}

func newWriter(c fiber.Ctx) *writer { return &writer{c, headerOf(c)} }

// Header returns the header of the answer, which WriteHeader sets.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader replaces the answer by one with a status, the header and no body.
func (w *writer) WriteHeader(status int) { setAnswer(w.c, status, w.header) }

// Write adds a part of the body.
func (w *writer) Write(p []byte) (int, error) { return w.c.Write(p) }

// An unsent is the http.ResponseWriter of an answer that is in the fiber.Ctx already.
type unsent struct{}

// Header returns no header.
func (unsent) Header() http.Header { return http.Header{} }

// Write does nothing.
func (unsent) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader does nothing.
func (unsent) WriteHeader(int) {}

// headerOf returns a copy of the header of the answer, without what fasthttp sets when it sends the
// answer: the length, and the type of an answer that has none.
func headerOf(c fiber.Ctx) http.Header {
	var own fasthttp.ResponseHeader
	c.Response().Header.CopyTo(&own)
	own.SetNoDefaultContentType(true)
	header := http.Header{}
	for name, value := range own.All() {
		header.Add(string(name), string(value))
	}
	header.Del(fiber.HeaderContentLength)
	return header
}

// setAnswer sets the status and the header of the answer, and drops its body.
func setAnswer(c fiber.Ctx, status int, to http.Header) {
	c.Response().ResetBody()
	c.Status(status)
	header := &c.Response().Header
	var names []string // as they were set, also without Fiber's normalizing
	for name := range header.All() {
		names = append(names, string(name))
	}
	for _, name := range names { // all before the first Add, because Del changes the order of other lines
		header.Del(name)
	}
	for name, values := range to {
		for _, value := range values {
			header.Add(name, value)
		}
	}
}

// bodyOf returns the body of the answer. It is empty for an answer that is sent later: see isSentLater.
func bodyOf(c fiber.Ctx) []byte {
	if c.Response().IsBodyStream() { // Body would read it
		return nil
	}
	return c.Response().Body()
}

// isSentLater reports whether the handler has left a stream, or takes over the connection: Fiber sends
// the answer in pieces after the middlewares have returned.
func isSentLater(c fiber.Ctx) bool { return c.Response().IsBodyStream() || c.RequestCtx().Hijacked() }

// hasAnswer reports whether the handler has given an answer: Fiber would not send an empty 200.
func hasAnswer(c fiber.Ctx) bool {
	return c.Response().StatusCode() != fiber.StatusOK || len(bodyOf(c)) > 0 || isSentLater(c)
}

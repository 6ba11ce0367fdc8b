package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
)

// consumed are the ways in which a middleware outside leaves no body.
var consumed = map[string]func(r *http.Request){
	"read":     func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
	"closed":   func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); _ = r.Body.Close() },
	"replaced": func(r *http.Request) { r.Body = http.NoBody },
}

// putBack reads the body and puts it back.
func putBack(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// bodyCures are what a warning says about the body, for each framework.
var bodyCures = map[string][]string{
	"nethttplock": {"r.Body = io.NopCloser(bytes.NewReader(body))"},
	"ginlock":     {"c.Request.Body = io.NopCloser(bytes.NewReader(body))", "c.ShouldBindBodyWith"},
	"echolock":    {"c.Request().Body = io.NopCloser(bytes.NewReader(body))"},
}

// wantConsumed fails the test unless there was one warning, about a reader whose requests have
// lost their body. It forgets the events.
func (e *environment) wantConsumed(reader string) {
	e.Helper()
	warnings, _ := e.events.of(core.Warned)
	if len(warnings) != 1 {
		e.Errorf("warnings: %v", warnings)
	}
	for _, warning := range warnings {
		text := warning.Err.Error()
		for _, part := range append(bodyCures[e.f.name],
			"reqlock: "+e.f.name+": "+reader+" refuses requests whose body a middleware outside has read: ") {
			if !strings.Contains(text, part) {
				e.Errorf("the warning is %q, without %q", text, part)
			}
		}
	}
	e.events.forget()
}

// The client had sent the field, so the refusal does not say that the request lacks it.
func bodyGoneBeforeLock(e *environment) {
	serve := func(way func(*http.Request)) *routeClient {
		return e.serve(route{
			outer: func(f frame) {
				way(f.(interface{ Request() *http.Request }).Request())
				f.Next()
			},
			locks: []lock{{keys: []key{byBody}}},
			handler: func(c call) {
				body, err := c.Body()
				c.Reply(fmt.Sprint(body == theKey, err))
			},
		})
	}
	for range consumed {
		serve(putBack).wantReply(plain, "true <nil>")
	}
	for _, way := range consumed {
		s := serve(way)
		for range 2 {
			s.wantRefusal(plain, e.rowOf(keyError()))
		}
		e.wantConsumed(`JSONField("id")`)
		s.wantRefusal(request{}, e.rowOf(refused(core.ErrNoKey, 0)))
	}
	if warnings, _ := e.events.of(core.Warned); len(warnings) != 0 {
		e.Errorf("a request without a body: %v", warnings)
	}
}

// Without its body every request would have the same fingerprint.
func bodyGone(e *environment) {
	serve := func(way func(*http.Request)) *service {
		return e.serveEndpoint(endpoint{outer: func(_ http.ResponseWriter, r *http.Request) bool {
			way(r)
			return true
		}})
	}
	s := serve(putBack)
	s.replays(s.runsWith(http.StatusCreated, payment("back")), payment("back"))
	for name, way := range consumed {
		s := serve(way)
		for i, header := range []http.Header{nil, {"Content-Encoding": {"gzip"}}} {
			request := payment(name)
			request.body, request.header = fmt.Sprint(i), header
			if answer := s.do(e.Context(), request); answer.status != http.StatusInternalServerError {
				e.Errorf("%s: %+v", name, answer)
			}
		}
		e.wantConsumed("Idempotent")
		empty := payment(name + "-empty")
		empty.body, empty.header = "", http.Header{"Content-Encoding": {"gzip"}}
		s.replays(s.runsWith(http.StatusCreated, empty), empty)
	}
}

// An empty body may have no Content-Length, as one in chunks.
func emptyChunks(e *environment) {
	s := e.serveEndpoint(endpoint{})
	empty := payment("chunks")
	empty.body, empty.chunked = "", true
	first := s.runsWith(http.StatusCreated, empty)
	s.replays(first, empty)
	s.refuses(core.ErrMismatch, payment("chunks"))
	empty.chunked = false
	s.replays(first, empty)
	if warnings, _ := e.events.of(core.Warned); len(warnings) != 0 {
		e.Errorf("warnings: %v", warnings)
	}
}

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
)

// headerScenarios test which headers of an answer its copies have.
func headerScenarios() []testCase {
	return []testCase{
		{"only copies have the Idempotent-Replayed header", everywhere, marker},
		{"cookies and headers of a single exchange are not replayed", everywhere, neverReplayed},
		{"headers of outer middlewares belong to the copy", everywhere, headersOutside},
		{"several values of a header stay in order", everywhere, severalValues},
		{"the application adds headers to those that are replayed", everywhere, moreHeaders},
		{"headers after the status are not sent", everywhere, lateHeaders},
		{"early hints are sent, and are not replayed", earlyHint, earlyHints},
	}
}

// The Idempotent-Replayed header of a handler is not stored.
func marker(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Cache-Control", "max-age=60")
		t.WriteHeader(http.StatusCreated)
	}})
	first := s.runsWith(http.StatusCreated, payment("marker"))
	s.replays(first, payment("marker"))
	if got := first.header.Get("Cache-Control"); got != "max-age=60" {
		e.Errorf("Cache-Control of the first answer is %q", got)
	}
}

func neverReplayed(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		for name, value := range map[string]string{
			"Set-Cookie": "session=secret", "Date": "Thu, 01 Jan 1970 00:00:00 GMT", "Server-Timing": "db;dur=1",
			"Traceparent": "00-1-1-01", "X-Request-Id": "first", "X-Ratelimit-Remaining": "7",
			"Www-Authenticate": "Basic", "Vary": "Accept", "Keep-Alive": "timeout=5", "Expires": "0",
			"Connection": "Content-Language", "Content-Language": "en",
		} {
			t.Header().Set(name, value)
		}
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte("paid"))
	}})
	first := s.runsWith(http.StatusCreated, payment("never"))
	if first.header.Get("Set-Cookie") == "" || first.header.Get("X-Request-Id") != "first" {
		e.Errorf("the first answer lacks its headers: %v", first.header)
	}
	again := s.do(e.Context(), payment("never"))
	if again.body != "paid" || again.header.Get("Date") == first.header.Get("Date") {
		e.Errorf("the copy got %+v", again)
	}
	for name := range again.header {
		if !slices.Contains([]string{"Cache-Control", "Content-Length", "Content-Type", "Date", "Idempotent-Replayed"}, name) {
			e.Errorf("the copy has the header %s: %q", name, again.header[name])
		}
	}
	if got := again.header["Content-Length"]; !slices.Equal(got, []string{"4"}) {
		e.Errorf("the length is %q", got)
	}
}

// Outer middlewares set some headers for each exchange: the copy has its own, even if they
// could be replayed. Headers that describe the answer are those of the answer.
func headersOutside(e *environment) {
	var requests atomic.Int64
	s := e.serveEndpoint(endpoint{
		outer: func(w http.ResponseWriter, _ *http.Request) bool {
			n := fmt.Sprint(requests.Add(1))
			w.Header().Set("X-Request-Id", n)
			w.Header().Set("Access-Control-Allow-Origin", n)
			w.Header().Set("X-Content-Type-Options", n)
			w.Header().Set("Content-Language", n)
			w.Header().Set("Etag", n)
			w.Header().Set("Link", n)
			return true
		},
		handler: func(t invocation) {
			t.Header().Set("Etag", "the handler's")
			t.Header().Add("Link", "the handler's")
			t.WriteHeader(http.StatusCreated)
		},
	})
	first := s.runsWith(http.StatusCreated, payment("outside"))
	again := s.do(e.Context(), payment("outside"))
	for name, want := range map[string][]string{
		"X-Request-Id": {"2"}, "Access-Control-Allow-Origin": {"2"}, "X-Content-Type-Options": {"2"},
		"Content-Language": {"1"}, "Etag": {"the handler's"}, "Link": {"1", "the handler's"},
	} {
		if got := again.header[name]; !slices.Equal(got, want) {
			e.Errorf("%s of the copy is %q, not %q; of the first %q", name, got, want, first.header[name])
		}
	}
}

func severalValues(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header()["Link"] = []string{"</b>", "</a>", "</b>", ""}
		t.WriteHeader(http.StatusCreated)
	}})
	first := s.runsWith(http.StatusCreated, payment("values"))
	if s.replays(first, payment("values")); len(first.header["Link"]) != 4 {
		e.Errorf("the first answer has %q", first.header["Link"])
	}
}

func moreHeaders(e *environment) {
	s := e.serveEndpoint(endpoint{
		own: ownOptions{replayed: []string{"x-payment", "Cache-Control"}},
		handler: func(t invocation) {
			t.Header().Set("X-Payment", "7")
			t.Header().Set("X-Other", "7")
			t.Header().Set("Cache-Control", "private")
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.runsWith(http.StatusCreated, payment("more"))
	again := s.do(e.Context(), payment("more"))
	if h := again.header; h.Get("X-Payment") != "7" || h.Get("X-Other") != "" || h.Get("Cache-Control") != "private" {
		e.Errorf("the copy has %v", h)
	}
}

func lateHeaders(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Etag", "1")
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte("paid"))
		t.Header().Set("Etag", "2")
		t.Header().Set("Location", "/late")
	}})
	first := s.runsWith(http.StatusCreated, payment("late"))
	if s.replays(first, payment("late")); first.header.Get("Etag") != "1" || first.header.Get("Location") != "" {
		e.Errorf("the first answer has %v", first.header)
	}
}

// c.Response() of Echo treats a 1xx status as the answer, so the handler uses the wrapped
// writer.
func earlyHints(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		t.Header().Set("Link", "</style.css>; rel=preload")
		net := innermost(t.ResponseWriter)
		net.WriteHeader(http.StatusEarlyHints)
		net.WriteHeader(http.StatusCreated)
		_, _ = net.Write([]byte("paid"))
	}})
	first := s.runsWith(http.StatusCreated, payment("hints"))
	again := s.replays(first, payment("hints"))
	if !slices.Equal(first.early, []int{http.StatusEarlyHints}) || again.early != nil {
		e.Errorf("before the first answer came %v, before the copy %v", first.early, again.early)
	}
}

// innermost returns the innermost writer that can be found by Unwrap.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return w
		}
		w = wrapper.Unwrap()
	}
}

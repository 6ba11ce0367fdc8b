package adapter

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// plainWriter is a ResponseWriter without optional methods.
type plainWriter struct{ http.ResponseWriter }

// An optional method that the outer writer does not have returns an error and changes
// nothing.
func TestUnsupportedMethodReturnsAnError(t *testing.T) {
	t.Parallel()
	outer := httptest.NewRecorder()
	rec := newRecorder(plainWriter{outer}, answer.Filter{}, plenty)
	controller := http.NewResponseController(rec)
	_, _, hijacked := controller.Hijack()
	for name, err := range map[string]error{
		"Flush":  controller.Flush(),
		"Hijack": hijacked,
		"Push":   rec.Push("/", nil),
	} {
		if !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rec.WriteHeader(http.StatusCreated)
	rec.Flush()
	rec.close()
	if a, replayable := rec.result(0); !replayable || a.Status != 201 || outer.Flushed {
		t.Errorf("%+v, replayable %v", a, replayable)
	}
}

// A wrapper is a ResponseWriter of an outer middleware.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestMethodsOfWrappedWritersAreFound(t *testing.T) {
	t.Parallel()
	outer := httptest.NewRecorder()
	rec := newRecorder(wrapper{wrapper{outer}}, answer.Filter{}, plenty)
	if err := rec.FlushError(); err != nil || !outer.Flushed {
		t.Errorf("flushed %v, %v", outer.Flushed, err)
	}
}

func TestHandlerCannotReachTheOuterWriter(t *testing.T) {
	t.Parallel()
	outer := httptest.NewRecorder()
	var rec http.ResponseWriter = newRecorder(outer, answer.Filter{}, plenty)
	if _, ok := rec.(interface{ Unwrap() http.ResponseWriter }); ok {
		t.Error("a Recorder has an Unwrap")
	}
	_, _ = rec.(io.ReaderFrom).ReadFrom(strings.NewReader("body"))
	_, _ = rec.(io.StringWriter).WriteString("body")
	if outer.Body.Len() != 0 {
		t.Errorf("sent %q", outer.Body)
	}
}

// An informational answer has the headers that the handler has set before it. Outer
// middlewares do not see these headers.
func TestInformationalHeadersAreNotInTheAnswer(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Outer", "1")
		rec := newRecorder(w, answer.Filter{}, plenty)
		rec.Header().Set("Link", "</style.css>")
		rec.Header().Del("X-Outer")
		rec.WriteHeader(http.StatusEarlyHints)
		rec.Header().Del("Link")
		rec.Header().Set("X-Outer", "1")
		rec.close()
		rec.send()
	})
	answer, err := server.Client().Get(server.URL) //nolint:noctx // a test's server
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.Header.Get("Link") != "" || answer.Header.Get("X-Outer") != "1" {
		t.Errorf("%v", answer.Header)
	}
}

// A compressing writer changes its header when the answer is sent.
type compressing struct{ http.ResponseWriter }

func (w compressing) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Encoding", "gzip")
	w.ResponseWriter.WriteHeader(status)
}

// Headers that outer middlewares set when the answer is sent stay. Headers that the handler
// sets too late are in the header as without a Recorder.
func TestHeadersOfOuterMiddlewareStay(t *testing.T) {
	t.Parallel()
	h := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		w.Header().Del("X-Outer")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Late", "1")
		w.Header().Del("X-Kept")
	}
	var headers []http.Header
	for _, handler := range []http.HandlerFunc{h, recording(h, plenty), recording(h, 1)} {
		outer := httptest.NewRecorder()
		outer.Header().Set("X-Outer", "1")
		outer.Header().Set("X-Kept", "1")
		handler(compressing{outer}, nil)
		headers = append(headers, outer.Header())
	}
	for _, header := range headers[1:] {
		if !reflect.DeepEqual(header, headers[0]) {
			t.Errorf("%v, without a Recorder %v", header, headers[0])
		}
	}
}

package adapter

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// answerOf runs an error handler on a real connection, with a Guard.
func answerOf(t *testing.T, handle func(http.ResponseWriter)) (status int, body string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		guard := newGuard(w, core.ErrBusy)
		handle(guard)
		guard.Finish()
		if !guard.Answered() {
			t.Error("finished, and not answered")
		}
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	const problem = `"code":"busy"`
	for name, test := range map[string]struct {
		handle func(http.ResponseWriter)
		status int
		body   string
	}{
		"nothing":     {func(http.ResponseWriter) {}, 409, problem},
		"header only": {func(w http.ResponseWriter) { w.Header().Set("X-A", "1") }, 409, problem},
		"body only":   {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "mine") }, 409, "mine"},
		"empty body":  {func(w http.ResponseWriter) { _, _ = w.Write(nil) }, 409, ""},
		"copied body": {func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("mine")) }, 409, "mine"},
		"status only": {func(w http.ResponseWriter) { w.WriteHeader(423) }, 423, ""},
		"both": {func(w http.ResponseWriter) {
			w.WriteHeader(423)
			_, _ = io.WriteString(w, "mine")
		}, 423, "mine"},
		"a success on purpose":        {func(w http.ResponseWriter) { w.WriteHeader(202) }, 202, ""},
		"early hints":                 {func(w http.ResponseWriter) { w.WriteHeader(103) }, 409, problem},
		"http.Error":                  {func(w http.ResponseWriter) { http.Error(w, "mine", http.StatusLocked) }, 423, "mine"},
		"flushed":                     {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 409, ""},
		"flushed by controller":       {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, 409, ""},
		"flushed behind a status":     {func(w http.ResponseWriter) { w.WriteHeader(423); w.(http.Flusher).Flush() }, 423, ""},
		"hijacked":                    {answerOnConn, 418, "mine"},
		"the default, asked for":      {func(w http.ResponseWriter) { WriteRefusal(w, core.ErrBusy) }, 409, problem},
		"the default, and then again": {func(w http.ResponseWriter) { WriteRefusal(w, core.ErrNoKey) }, 400, `"no_key"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := answerOf(t, test.handle)
			if status != test.status || !strings.Contains(body, test.body) || test.body == "" && body != "" {
				t.Errorf("%d %q, want %d %q", status, body, test.status, test.body)
			}
		})
	}
}

// answerOnConn answers on the connection.
func answerOnConn(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
}

// A Guard returns an error for an optional method that its writer does not have.
func TestGuardOfAPlainWriter(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	guard := newGuard(recorder, core.ErrBusy)
	if _, _, err := guard.Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Hijack: %v", err)
	}
	if guard.Answered() {
		t.Error("answered by a hijacking that failed")
	}
	guard.Finish()
	if recorder.Code != http.StatusConflict {
		t.Errorf("status %d after a hijacking that failed", recorder.Code)
	}
	if guard.Unwrap() != http.ResponseWriter(recorder) {
		t.Error("Unwrap does not return the writer")
	}
}

// A Guard keeps the answer, unless it is too long.
func TestGuardKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		parts []string
		body  string
		kept  bool
	}{
		"no bytes":      {nil, "", true},
		"up to a limit": {[]string{"loc", "ked"}, "locked", true},
		"over a limit":  {[]string{"locked", "!", "x"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := newGuard(httptest.NewRecorder(), core.ErrBusy)
			guard.keep(6)
			guard.WriteHeader(http.StatusLocked)
			for _, part := range test.parts {
				_, _ = io.WriteString(guard, part)
			}
			got := guard.refused(nil)
			if got.status != http.StatusLocked || got.ours || (got.body != nil) != test.kept || string(got.body) != test.body {
				t.Errorf("%d %q, made by reqlock %v", got.status, got.body, got.ours)
			}
		})
	}
}

package nethttplock_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// The handler gets the server's own writer with all its interfaces.
func TestWriterIsTheServersOwn(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var outer http.ResponseWriter
	locked := nethttplock.Middleware(locks, literal)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if w != outer {
			t.Errorf("the handler got a %T", w)
		}
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no http.Flusher")
		}
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("ResponseController: %v", err)
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	}))
	server := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer = w
		locked.ServeHTTP(w, r)
	}))
	if status := get(t, server); status != http.StatusTeapot {
		t.Errorf("status %d", status)
	}
}

// Around a whole mux PathValue is empty.
func TestPathValueAroundTheMux(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /accounts/{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler has run") })
	server := newServer(t, nethttplock.Middleware(adaptertest.UnusedLocker(t), nethttplock.PathValue("id"))(mux))
	got := do(t, server, newRequest(t, http.MethodPost, server.URL+"/accounts/7", nil))
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"no_key"`) {
		t.Errorf("%+v", got)
	}
}

// The server removes the temporary files of an upload, although the handler has
// parsed it in another request.
func TestUploadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	locks, _ := adaptertest.Locker(t)
	files := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		uploads := 0
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "multipart-") {
				uploads++
			}
		}
		return uploads
	}
	server := newServer(t, nethttplock.Middleware(locks, nethttplock.Form("id"))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(0); err != nil {
				t.Errorf("ParseMultipartForm: %v", err)
			}
			if files() != 1 || r.FormValue("id") != "7" {
				t.Errorf("%d files, id %q", files(), r.FormValue("id"))
			}
		})))
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("id", "7")
	file, err := w.CreateFormFile("upload", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(file, "text")
	_ = w.Close()
	r := newRequest(t, http.MethodPost, server.URL, &form)
	r.Header.Set("Content-Type", w.FormDataContentType())
	if got := do(t, server, r); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	suite.Eventually(t, "the file is removed", func() bool { return files() == 0 })
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":        {func() { nethttplock.Middleware(nil, literal) }, "locker"},
		"zero Key":          {func() { nethttplock.Middleware(locks, nethttplock.Key{}) }, "needs a key"},
		"nil handler":       {func() { nethttplock.Middleware(locks, literal)(nil) }, "handler"},
		"nil option":        {func() { nethttplock.Middleware(locks, literal, nil) }, "option is nil"},
		"foreign option":    {func() { nethttplock.Middleware(locks, literal, adaptertest.ForeignOption()) }, adaptertest.ForeignOptionText},
		"bad setting":       {func() { nethttplock.Middleware(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":      {func() { nethttplock.Middleware(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"nil error handler": {func() { nethttplock.WithErrorHandler(nil) }, "WithErrorHandler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

func TestThePatternAndTheFormAreKnownOutside(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /a/{id}", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm() })
	handler := nethttplock.Middleware(locks, nethttplock.Literal("router"))(mux)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a/1", strings.NewReader("amount=3"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "POST /a/{id}" || r.PostFormValue("amount") != "3" {
		t.Errorf("outside the pattern is %q, the form %v", r.Pattern, r.PostForm)
	}
}

func TestAPanicOfTheErrorHandlerIsNoSuccess(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	handler := nethttplock.Middleware(locks, nethttplock.Header("X-Key"),
		nethttplock.WithErrorHandler(func(http.ResponseWriter, *http.Request, error) { panic("own") }))(
		http.NotFoundHandler())
	w := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}()
	if w.Code != http.StatusBadRequest {
		t.Errorf("got %d", w.Code)
	}
}

// http.TimeoutHandler does not wait for its handler. Around the lock, the lock is
// held until the handler returns; inside, the lock ends too early. TimeoutHandler
// also returns when the request's context ends; the test ends it in the handler.
func TestTimeoutHandler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stack         func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler
		heldMeanwhile bool
	}{
		"around the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return http.TimeoutHandler(lock(h), time.Minute, "")
		}, true},
		"inside the lock": {func(lock func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return lock(http.TimeoutHandler(h, time.Minute, ""))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			end, ended := make(chan struct{}), make(chan struct{})
			stack := test.stack(nethttplock.Middleware(locks, literal), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				defer close(ended)
				leave()
				<-end
			}))
			w := httptest.NewRecorder()
			stack.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("status %d", w.Code)
			}
			if ctx.Err() == nil {
				t.Fatal("the handler has not run")
			}
			if adaptertest.IsHeld(t, rdb) != test.heldMeanwhile {
				t.Errorf("while the handler runs, the key is held: %v", !test.heldMeanwhile)
			}
			close(end)
			suite.AwaitClosed(t, "the handler ends", ended)
			suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
		})
	}
}

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) http.Handler{
		"Middleware": func(locks *core.Locker) http.Handler { return nethttplock.Middleware(locks, literal)(closing) },
		"Idempotent": func(locks *core.Locker) http.Handler { return nethttplock.Idempotent(locks, literal)(closing) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			adaptertest.CheckCaller(t, locks.Locker, build(locks.Locker), ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// closing closes the Locker during the request.
var closing = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { adaptertest.CloseLocker(r) })

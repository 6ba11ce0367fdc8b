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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/nethttplock"
)

// The handler gets the server's own writer, with all that it can do.
//
//faults:row 38
func TestWriterIsTheServersOwn(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
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

// The handler's context carries the lease and ends with it; the server's own
// is as it was.
func TestRequestContext(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t)
	inner := make(chan context.Context, 1)
	locked := nethttplock.Middleware(locks, literal)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		inner <- r.Context()
		lease, ok := nethttplock.FromContext(r.Context())
		if !ok || lease.Key() != theKey {
			t.Errorf("lease of %q, %v", lease.Key(), ok)
		}
		if token := rdb.Get(r.Context(), "reqlock:"+theKey).Val(); token == "" || token != lease.Token() {
			t.Error("the key does not carry the lease's token")
		}
	}))
	server := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before := r.Context()
		locked.ServeHTTP(w, r)
		if r.Context() != before || before.Err() != nil {
			t.Errorf("the server's context was changed: %v", before.Err())
		}
		if _, ok := nethttplock.FromContext(r.Context()); ok {
			t.Error("the server's context carries a lease")
		}
		if (<-inner).Err() == nil {
			t.Error("the handler's context goes on after its lease")
		}
	}))
	if status := get(t, server); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}

// Two middlewares with the same key take one lock, and the outer one frees it.
//
//faults:row 44
func TestNestedSameKey(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	events := map[core.EventKind]int{}
	locks, rdb := newLocker(t, core.WithObserver(func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		events[e.Kind]++
	}))
	lock := nethttplock.Middleware(locks, literal, core.WithWait(5*time.Second))
	inner := lock(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if lease, _ := nethttplock.FromContext(r.Context()); lease.Key() != theKey {
			t.Error("no lease")
		}
	}))
	server := newServer(t, lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if !held(t, rdb) || r.Context().Err() != nil {
			t.Error("the inner middleware has freed the lock")
		}
	})))
	if status := get(t, server); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	mu.Lock()
	defer mu.Unlock()
	if held(t, rdb) || events[core.Acquired] != 1 || events[core.Released] != 1 || events[core.Waiting] != 0 {
		t.Errorf("held %v, events %v", held(t, rdb), events)
	}
}

// ErrSkip runs a request with no lock, on purpose, past a lock that is held.
func TestSkip(t *testing.T) {
	t.Parallel()
	locks, rdb := newLocker(t)
	hold(t, rdb)
	key := core.When(func(r *http.Request) bool { return r.Method != http.MethodGet }, literal)
	server := newServer(t, nethttplock.Middleware(locks, key)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, ok := nethttplock.FromContext(r.Context()); ok {
			t.Error("there is a lease")
		}
	})))
	if status := get(t, server); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if got := do(t, server, newRequest(t, http.MethodPost, server.URL, nil)); got.status != http.StatusConflict {
		t.Errorf("with the lock, status %d", got.status)
	}
}

// Transfers from a to b and from b to a exclude each other, and never wait for
// each other in a ring.
func TestAlso(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	running := map[string]*atomic.Int32{"a": {}, "b": {}}
	server := newServer(t, nethttplock.Middleware(locks,
		nethttplock.Query("from"), nethttplock.Also(nethttplock.Query("to")), core.WithWait(30*time.Second),
	)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		from, to := r.FormValue("from"), r.FormValue("to")
		for _, account := range []string{from, to} {
			if running[account].Add(1) != 1 && from != to {
				t.Errorf("account %s is in two transfers", account)
			}
			defer running[account].Add(-1)
		}
		if lease, _ := nethttplock.FromContext(r.Context()); lease.Key() != from {
			t.Errorf("the lease is that of %q, not of the first key %q", lease.Key(), from)
		}
		time.Sleep(time.Millisecond) // lets the others come in between, if they can
	})))
	var clients sync.WaitGroup
	for i := range 24 {
		query := [...]string{"?from=a&to=b", "?from=b&to=a", "?from=a&to=a"}[i%3]
		clients.Go(func() {
			got := do(t, server, newRequest(t, http.MethodPost, server.URL+query, nil))
			if got.status != http.StatusOK {
				t.Errorf("%s: %+v", query, got)
			}
		})
	}
	clients.Wait()
}

// One of nine requests runs, eight do not, and the key is the path's.
func TestOneOfNineRuns(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	refused := make(chan struct{}, 9)
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}", nethttplock.Middleware(locks, nethttplock.PathValue("id"))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for range 8 {
				<-refused
			}
		})))
	server := newServer(t, mux)
	var clients sync.WaitGroup
	var ran atomic.Int32
	for range 9 {
		clients.Go(func() {
			got := do(t, server, newRequest(t, http.MethodPost, server.URL+"/accounts/7", nil))
			switch got.status {
			case http.StatusOK:
				ran.Add(1)
			case http.StatusConflict:
				refused <- struct{}{}
			default:
				t.Errorf("%+v", got)
			}
		})
	}
	clients.Wait()
	if ran.Load() != 1 {
		t.Errorf("%d have run", ran.Load())
	}
}

// Around a whole mux the path has no values yet.
func TestPathValueAroundTheMux(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /accounts/{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler has run") })
	server := newServer(t, nethttplock.Middleware(unusedLocker(t), nethttplock.PathValue("id"))(mux))
	got := do(t, server, newRequest(t, http.MethodPost, server.URL+"/accounts/7", nil))
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"no_key"`) {
		t.Errorf("%+v", got)
	}
}

// The handler finds the whole body behind key functions that have read it.
func TestBodyReachesTheHandler(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	const body = `{"from":{"id":1},"to":{"id":"2"}}`
	server := newServer(t, nethttplock.Middleware(locks,
		core.Named("account", nethttplock.JSONField("from.id")),
		nethttplock.Also(core.Named("account", nethttplock.JSONField("to.id", nethttplock.MaxBody(64)))),
	)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if string(got) != body || err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("the handler reads %q, %v, of length %d", got, err, r.ContentLength)
		}
		if lease, _ := nethttplock.FromContext(r.Context()); lease.Key() != "account:1" {
			t.Errorf("key %q", lease.Key())
		}
	})))
	got := do(t, server, newRequest(t, http.MethodPost, server.URL, strings.NewReader(body)))
	if got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
}

// The server removes the temporary files of an upload, though the handler has
// parsed it in a request of its own.
func TestUploadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	locks, _ := newLocker(t)
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
	eventually(t, "the file is removed", func() bool { return files() == 0 })
}

type foreignOption struct{}

func (foreignOption) ReqlockOption() {}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := unusedLocker(t)
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":        {func() { nethttplock.Middleware(nil, literal) }, "locker"},
		"nil key":           {func() { nethttplock.Middleware(locks, nil) }, "key function"},
		"nil handler":       {func() { nethttplock.Middleware(locks, literal)(nil) }, "handler"},
		"nil option":        {func() { nethttplock.Middleware(locks, literal, nil) }, "option is nil"},
		"foreign option":    {func() { nethttplock.Middleware(locks, literal, foreignOption{}) }, "nethttplock_test.foreignOption is an option of another adapter"},
		"bad setting":       {func() { nethttplock.Middleware(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":      {func() { nethttplock.Middleware(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"Also nothing":      {func() { nethttplock.Also() }, "Also"},
		"Also nil":          {func() { nethttplock.Also(literal, nil) }, "Also"},
		"nil error handler": {func() { nethttplock.WithErrorHandler(nil) }, "WithErrorHandler"},
		"MaxBody":           {func() { nethttplock.MaxBody(0) }, "MaxBody"},
		"BodyOption":        {func() { nethttplock.JSONField("id", nethttplock.BodyOption{}) }, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer wantPanic(t, test.want)
			test.register()
		})
	}
}

// wantPanic recovers from the panic of a registration, which must name what is
// wrong.
func wantPanic(t *testing.T, want string) {
	t.Helper()
	message := ""
	switch caught := recover().(type) {
	case string:
		message = caught
	case error:
		message = caught.Error()
	}
	if !strings.HasPrefix(message, "reqlock: ") || !strings.Contains(message, want) {
		t.Errorf("panic %q does not name %s", message, want)
	}
}

// All key functions are wired to the part of the request that they are named
// after; what they refuse is tested where they are written.
func TestKeyFunctions(t *testing.T) {
	t.Parallel()
	type ctxKey struct{}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), ctxKey{}, 77), http.MethodPost,
		"/?q=query", strings.NewReader("f=form"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-H", "header")
	r.AddCookie(&http.Cookie{Name: "c", Value: "cookie"})
	r.SetPathValue("p", "path")
	r.SetBasicAuth("user", "secret")
	for want, key := range map[string]nethttplock.KeyFunc{
		"header":      nethttplock.Header("X-H"),
		"path":        nethttplock.PathValue("p"),
		"query":       nethttplock.Query("q"),
		"cookie":      nethttplock.Cookie("c"),
		"form":        nethttplock.Form("f"),
		"192.0.2.1":   nethttplock.RemoteIP(),
		"example.com": nethttplock.Host(),
		"user":        nethttplock.BasicUser(),
		"77":          nethttplock.ContextValue(ctxKey{}),
		"as":          nethttplock.ContextValueAs(ctxKey{}, func(int) string { return "as" }),
		"literal":     nethttplock.Literal("literal"),
	} {
		if got, err := key(r); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	_, err := nethttplock.Form("f", nethttplock.MaxBody(5))(r)
	if outcome, _ := core.OutcomeOf(err); outcome.HTTP != http.StatusRequestEntityTooLarge {
		t.Errorf("a form over the limit: %v", err)
	}
}

func TestThePatternAndTheFormAreKnownOutside(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
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

func TestTheLeaseOfTheFirstKeyIsTheOneInTheContext(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
	var got string
	handler := nethttplock.Middleware(locks, nethttplock.Literal("z"), nethttplock.Also(nethttplock.Literal("a")))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			lease, _ := nethttplock.FromContext(r.Context())
			got = lease.Key()
		}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if got != "z" {
		t.Errorf("the lease in the context is that of %q", got)
	}
}

func TestTheLastMaxBodyWins(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"id":"42"}`))
	if key, err := nethttplock.JSONField("id", nethttplock.MaxBody(2), nethttplock.MaxBody(100))(r); key != "42" || err != nil {
		t.Errorf("got %q, %v", key, err)
	}
}

func TestAPanicOfTheErrorHandlerIsNoSuccess(t *testing.T) {
	t.Parallel()
	locks, _ := newLocker(t)
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

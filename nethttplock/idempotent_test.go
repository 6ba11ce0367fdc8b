package nethttplock_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// byKey is a key that the client chooses.
var byKey = nethttplock.IdempotencyKey()

// wantCode fails the test unless an answer is a problem document with a code.
func wantCode(t *testing.T, w *httptest.ResponseRecorder, code string) {
	t.Helper()
	if !strings.Contains(w.Body.String(), `"code":"`+code+`"`) {
		t.Errorf("%d %s, want %s", w.Code, w.Body, code)
	}
}

// Registrations in all forms compile, and refuse requests without a key. Exception:
// requests for which the key is optional run.
func TestIdempotentRegistrations(t *testing.T) {
	t.Parallel()
	type userKey struct{}
	locks := adaptertest.UnusedLocker(t)
	h := http.NotFoundHandler()
	mux := http.NewServeMux()
	scoped := core.Join(nethttplock.ContextValue(userKey{}), nethttplock.IdempotencyKey())
	mux.Handle("POST /1", nethttplock.Idempotent(locks, scoped)(h))
	mux.Handle("POST /2", nethttplock.Idempotent(locks, scoped,
		core.WithWait(2*time.Second),
		core.WithRetention(time.Hour),
		core.WithRerunUnknown(true),
		core.WithMaxAnswer(64<<10),
		nethttplock.WithErrorHandler(nethttplock.WriteError),
	)(h))
	mux.Handle("/3/{id}", nethttplock.Idempotent(locks, scoped,
		core.WithMethods(http.MethodPut, "delete"),
		core.WithOptionalKey(),
		core.WithReplayedHeaders("X-Payment"),
	)(h))
	mux.Handle("POST /4", nethttplock.Idempotent(locks, nethttplock.Header("X-Request-Key"),
		core.WithOptionalKey("X-Request-Key"),
		core.WithMaxBody(64<<10),
		core.WithStored(func(status int) bool { return status < 300 }),
	)(h))
	mux.Handle("POST /5", nethttplock.Idempotent(locks, nethttplock.JSONField("id"), core.WithoutFingerprint())(h))
	mux.Handle("POST /6", nethttplock.Idempotent(locks, scoped,
		core.WithFingerprint(func(r *http.Request) ([]byte, error) { return []byte(r.PostFormValue("amount")), r.ParseForm() }),
	)(nethttplock.Middleware(locks, nethttplock.ContextValue(userKey{}).Named("user"))(h)))
	const refused, runs = http.StatusBadRequest, http.StatusNotFound
	for request, want := range map[string]int{
		"POST /1": refused, "POST /2": refused, "PUT /3/7": runs, "POST /4": runs, "POST /5": refused, "POST /6": refused,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	idempotent := func(opts ...core.Option) func() {
		return func() { nethttplock.Idempotent(locks, byKey, opts...) }
	}
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":     {func() { nethttplock.Idempotent(nil, byKey) }, "locker"},
		"zero Key":       {func() { nethttplock.Idempotent(locks, nethttplock.Key{}) }, "needs a key"},
		"nil handler":    {func() { nethttplock.Idempotent(locks, byKey)(nil) }, "handler"},
		"nil option":     {idempotent(nil), "option is nil"},
		"foreign option": {idempotent(adaptertest.ForeignOption()), adaptertest.ForeignOptionText},
		"bad setting":    {idempotent(core.WithRetention(1)), "WithRetention"},
		"All":            {func() { nethttplock.Idempotent(locks, core.All(byKey, literal)) }, "Idempotent has one key"},
		"FailOpen":       {idempotent(core.WithFailOpen(true)), "WithFailOpen"},
		"a cookie":       {idempotent(core.WithReplayedHeaders("Set-Cookie")), "Set-Cookie"},
		"of Idempotent":  {func() { nethttplock.Middleware(locks, byKey, core.WithStored(func(int) bool { return true })) }, "WithStored has no effect on Middleware"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

// The route is the pattern, or the path if there is no pattern. Events have the name of the pattern, and
// never the path. An unknown outcome has that of a mux behind the middleware, too.
func TestRouteIsThePatternOrThePath(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	names := map[core.EventKind]string{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		names[e.Kind] = e.Name
	}))
	uncertain := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		attempt, _ := core.AttemptFromContext(r.Context())
		attempt.Decide(core.EndUnknown)
	})
	idempotent := nethttplock.Idempotent(locks, byKey)
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{id}/pay", idempotent(uncertain))
	behind := http.NewServeMux()
	behind.Handle("POST /accounts/{id}/pay", uncertain)
	const pattern = "POST /accounts/{id}/pay"
	for sent, test := range map[string]struct {
		handler              http.Handler
		route, name, unknown string
	}{
		"mux":    {mux, pattern, pattern, pattern},
		"none":   {idempotent(uncertain), "/accounts/7/pay", "", ""},
		"behind": {idempotent(behind), "/accounts/7/pay", "", pattern},
	} {
		adaptertest.Pay(t, test.handler, "/accounts/7/pay", sent, "")
		mu.Lock()
		if names[core.Acquired] != test.name || names[core.Released] != test.name || names[core.OutcomeUnknown] != test.unknown {
			t.Errorf("%s: names %q", sent, names)
		}
		mu.Unlock()
		wantCode(t, adaptertest.Pay(t, test.handler, "/accounts/7/pay", sent, ""), "outcome_unknown")
		key, err := core.EndpointKey("POST", test.route, sent)
		if err != nil {
			t.Fatal(err)
		}
		record, err := locks.ReadRecord(t.Context(), key)
		if err != nil || record.State != core.StateUnknown {
			t.Errorf("record %+v, %v", record, err)
		}
		if err := locks.Resolve(t.Context(), key, core.NotDone(), record.Attempt); err != nil {
			t.Errorf("Resolve: %v", err)
		}
		if w := adaptertest.Pay(t, test.handler, "/accounts/7/pay", sent, ""); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", test.route, w.Code, w.Body)
		}
	}
}

// If a request does not get the lock of an inner Middleware, its key is free again. A
// copy needs no lock.
func TestMiddlewareBehindIdempotent(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	h := nethttplock.Idempotent(locks, byKey)(nethttplock.Middleware(locks, literal)(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lease, _ := core.LeaseFromContext(r.Context())
			if _, within := core.AttemptFromContext(r.Context()); !within || lease.Key() != theKey {
				t.Errorf("the handler runs under %v", lease)
			}
			w.WriteHeader(http.StatusCreated)
		})))
	adaptertest.Hold(t, rdb)
	wantCode(t, adaptertest.Pay(t, h, "/", "behind", ""), "busy")
	adaptertest.Free(t, rdb)
	if w := adaptertest.Pay(t, h, "/", "behind", ""); w.Code != http.StatusCreated || w.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	adaptertest.Hold(t, rdb)
	if w := adaptertest.Pay(t, h, "/", "behind", ""); w.Code != http.StatusCreated || w.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("the copy: %d %v", w.Code, w.Header())
	}
}

// A TimeoutHandler inside Idempotent answers 503, which frees the key although the
// handler still runs. That is one warning, unless a Middleware stands inside.
func TestTimeoutInsideIdempotentFreesTheKey(t *testing.T) {
	t.Parallel()
	warned := 0
	locks, _ := adaptertest.Locker(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Warned && strings.HasPrefix(e.Err.Error(), "reqlock: nethttplock: an http.TimeoutHandler inside Idempotent ") {
			warned++
		}
	}))
	end := make(chan struct{})
	defer close(end)
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		<-end
	})
	h := nethttplock.Idempotent(locks, byKey)(http.TimeoutHandler(slow, 20*time.Millisecond, "too slow"))
	for sent, key := range map[string]nethttplock.Key{"locked": literal, "failing": failing(statusError(http.StatusServiceUnavailable))} {
		locked := nethttplock.Idempotent(locks, byKey)(http.TimeoutHandler(nethttplock.Middleware(locks, key)(slow), 20*time.Millisecond, "too slow"))
		if w := adaptertest.Pay(t, locked, "/", sent, ""); w.Code != http.StatusServiceUnavailable || warned != 0 {
			t.Errorf("with a Middleware inside: %d %s, %d warnings", w.Code, w.Body, warned)
		}
	}
	for range 2 {
		if w := adaptertest.Pay(t, h, "/", "timeout", ""); w.Code != http.StatusServiceUnavailable || w.Body.String() != "too slow" || warned != 1 {
			t.Errorf("%d %s, %d warnings", w.Code, w.Body, warned)
		}
	}
}

// The outer request gets the parsed form and the pattern of the inner one, but not
// its context.
func TestIdempotentCopiesFormAndPatternOutside(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.FormValue("a"))
	})
	h := nethttplock.Idempotent(locks, byKey)(mux)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/7", strings.NewReader("a=1"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", "up")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Body.String() != "1" || r.PostForm.Get("a") != "1" || r.Pattern != "POST /{id}" {
		t.Errorf("%q, form %v, pattern %q", w.Body, r.PostForm, r.Pattern)
	}
	if _, within := core.AttemptFromContext(r.Context()); within {
		t.Error("the request outside has the attempt")
	}
}

// WithErrorHandler works for Idempotent too.
func TestIdempotentErrorHandler(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	h := nethttplock.Idempotent(locks, byKey, nethttplock.WithErrorHandler(
		func(w http.ResponseWriter, _ *http.Request, err error) {
			if refusal, _ := core.RefusalOf(err); refusal.Code == "no_key" {
				w.WriteHeader(http.StatusPreconditionRequired)
			}
		}))(http.NotFoundHandler())
	if w := adaptertest.Pay(t, h, "/", "", ""); w.Code != http.StatusPreconditionRequired {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	adaptertest.Pay(t, h, "/", "key", "")
	wantCode(t, adaptertest.Pay(t, h, "/", "key", "another"), "mismatch") // about which it is silent
}

func TestHijackedConnectionIsNotReplayed(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	ended := make(chan struct{}, 2)
	idempotent := nethttplock.Idempotent(locks, byKey)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "other")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		_ = conn.Close()
	}))
	server := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		idempotent.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	r := newRequest(t, http.MethodPost, server.URL, nil)
	r.Header.Set("Idempotency-Key", "upgrade")
	for _, want := range []int{http.StatusSwitchingProtocols, http.StatusConflict} {
		if got := do(t, server, r); got.status != want {
			t.Errorf("%+v, want %d", got, want)
		}
		suite.Receive(t, "the handler ends", ended)
	}
}

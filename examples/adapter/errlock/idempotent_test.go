package errlock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/examples/adapter/errlock"
	"github.com/reqlock/reqlock/examples/adapter/errmux"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// serve returns a Mux with one route.
func serve(h errmux.Handler, around ...errmux.Middleware) *errmux.Mux {
	mux := &errmux.Mux{}
	mux.Handle("POST /", h, around...)
	return mux
}

// The caller of a lease of a middleware is the code that made the middleware.
func TestCallerIsTheCodeThatMadeTheMiddleware(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker, errlock.Key, ...core.Option) errmux.Middleware{
		"Middleware": errlock.Middleware, "Idempotent": errlock.Idempotent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			closing := func(_ http.ResponseWriter, r *http.Request) error { adaptertest.CloseLocker(r); return nil }
			h := serve(closing, build(locks.Locker, errlock.Literal("k")))
			adaptertest.CheckCaller(t, locks.Locker, h, ".TestCallerIsTheCodeThatMadeTheMiddleware.func")
		})
	}
}

// An error that nobody answers is not stored as an empty 200.
func TestErrorWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	h := serve(func(http.ResponseWriter, *http.Request) error { return &errmux.Error{Status: http.StatusBadGateway} },
		errlock.Idempotent(locktest.New(t).Locker, errlock.IdempotencyKey()))
	h.OnError = func(http.ResponseWriter, *http.Request, error) {}
	adaptertest.Pay(t, h, "/", "k", "")
	adaptertest.WantProblem(t, adaptertest.Pay(t, h, "/", "k", ""), http.StatusConflict, "outcome_unknown")
}

// A middleware outside sees the form that the handler has parsed.
func TestFormIsSeenOutside(t *testing.T) {
	t.Parallel()
	parse := func(_ http.ResponseWriter, r *http.Request) error { return r.ParseForm() }
	locks := locktest.New(t).Locker
	for name, lock := range map[string]errmux.Middleware{
		"Middleware": errlock.Middleware(locks, errlock.Literal("k")),
		"Idempotent": errlock.Idempotent(locks, errlock.Literal("k")),
	} {
		amount := ""
		h := serve(parse, func(next errmux.Handler) errmux.Handler {
			return func(w http.ResponseWriter, r *http.Request) error {
				defer func() { amount = r.PostFormValue("amount") }()
				return next(w, r)
			}
		}, lock)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("amount=7"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if amount != "7" {
			t.Errorf("%s: the amount is %q", name, amount)
		}
	}
}

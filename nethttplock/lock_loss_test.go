package nethttplock_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// WriteError finds the type of the problem in the context of the request.
func TestWriteErrorOfALossHasTheProblemType(t *testing.T) {
	t.Parallel()
	opts := []core.Option{core.WithMaxHold(time.Millisecond), core.WithProblemType("/errors/")}
	h := nethttplock.Middleware(locktest.New(t).Locker, literal, opts...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		nethttplock.WriteError(w, r, context.Cause(r.Context()))
	}))
	adaptertest.WantTypedLoss(t, adaptertest.Pay(t, h, "/", "k", ""))
}

// A handler that was cut off and gives no answer must not look like a success, nor, unless
// nothing has happened, like a refusal after which the client may try again. No copy runs.
func TestHandlerThatLosesItsLease(t *testing.T) {
	t.Parallel()
	brief := core.WithMaxHold(50 * time.Millisecond) // an attempt inside begins before
	outermost := func(locks *core.Locker) func(http.Handler) http.Handler {
		return nethttplock.Idempotent(locks, byKey, brief)
	}
	around := func(inside func(*core.Locker) func(http.Handler) http.Handler) func(*core.Locker) func(http.Handler) http.Handler {
		return func(locks *core.Locker) func(http.Handler) http.Handler {
			return func(next http.Handler) http.Handler { return nethttplock.Idempotent(locks, byKey)(inside(locks)(next)) }
		}
	}
	lock := around(func(locks *core.Locker) func(http.Handler) http.Handler {
		return nethttplock.Middleware(locks, literal, brief)
	})
	attempt := around(func(locks *core.Locker) func(http.Handler) http.Handler {
		return nethttplock.Idempotent(locks, literal, brief)
	})
	same := func(locks *core.Locker) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return outermost(locks)(nethttplock.Idempotent(locks, byKey)(next))
		}
	}
	silent := func(http.ResponseWriter, *http.Request) {}
	noEffect := func(_ http.ResponseWriter, r *http.Request) {
		running, _ := core.AttemptFromContext(r.Context())
		running.Decide(core.EndNoEffect)
	}
	for name, test := range map[string]struct {
		wrap    func(*core.Locker) func(http.Handler) http.Handler
		handler http.HandlerFunc
		code    string // of the answer; "" is the handler's own
		copy    string // the code that a copy gets
	}{
		"no answer":                      {outermost, silent, "outcome_unknown", "outcome_unknown"},
		"no effect":                      {outermost, noEffect, "unavailable", "unavailable"},
		"a header":                       {outermost, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "1") }, "outcome_unknown", "outcome_unknown"},
		"an empty 200":                   {outermost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, "outcome_unknown", "outcome_unknown"},
		"an answer":                      {outermost, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, "", ""},
		"flushed":                        {outermost, func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, "", "completed_unreplayable"},
		"a lock inside":                  {lock, silent, "outcome_unknown", "outcome_unknown"},
		"a lock inside, no effect":       {lock, noEffect, "unavailable", "unavailable"},
		"a lock inside, an answer":       {lock, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, "", ""},
		"an attempt inside":              {attempt, silent, "outcome_unknown", "outcome_unknown"},
		"an attempt inside, no effect":   {attempt, noEffect, "unavailable", "outcome_unknown"},
		"an attempt inside, an answer":   {attempt, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, "", ""},
		"the same key inside, no answer": {same, silent, "outcome_unknown", "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			handler := test.wrap(locks.Locker)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				test.handler(w, r)
			}))
			for _, code := range []string{test.code, test.copy} {
				adaptertest.WantLoss(t, adaptertest.Pay(t, handler, "/", "k", ""), code)
			}
		})
	}
}

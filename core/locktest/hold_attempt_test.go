package locktest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/nethttplock"
)

// pay sends a payment with one key to an idempotent route of a Locker. It returns the code of
// the answer, or its body if there is no code.
func pay(t *testing.T, l *core.Locker, handler http.HandlerFunc, opts ...core.Option) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader("7 EUR"))
	r.Header.Set("Idempotency-Key", "8e03978e")
	w := httptest.NewRecorder()
	nethttplock.Idempotent(l, nethttplock.IdempotencyKey(), opts...)(handler).ServeHTTP(w, r)
	if _, code, ok := strings.Cut(w.Body.String(), `"code":"`); ok {
		code, _, _ = strings.Cut(code, `"`)
		return code
	}
	return w.Body.String()
}

// answering answers with a text.
func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func TestAttemptThatRunsElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, _ func() time.Duration) {
		locks := locktest.New(t)
		running, proceed := make(chan struct{}), make(chan struct{})
		go pay(t, locks.Process().Locker, func(w http.ResponseWriter, r *http.Request) {
			close(running)
			<-proceed
			answering("first")(w, r)
		})
		<-running
		time.Sleep(time.Hour) // its lease is renewed
		if got := pay(t, locks.Locker, answering("again")); got != "busy" {
			t.Errorf("while the attempt runs, the copy gets %q", got)
		}
		waited := make(chan string)
		go func() { waited <- pay(t, locks.Locker, answering("again"), core.WithWait(time.Minute)) }()
		time.Sleep(time.Second)
		close(proceed)
		if got := <-waited; got != "first" {
			t.Errorf("the copy that waits gets %q", got)
		}
	})
}

func TestAttemptThatWasAnsweredElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, _ func() time.Duration) {
		locks := locktest.New(t, core.WithRetention(time.Hour))
		pay(t, locks.Process().Locker, answering("first"))
		time.Sleep(time.Hour - time.Second)
		if got := pay(t, locks.Locker, answering("again")); got != "first" {
			t.Errorf("before the retention is over, the copy gets %q", got)
		}
		time.Sleep(time.Second)
		if got := pay(t, locks.Locker, answering("again")); got != "again" {
			t.Errorf("after the retention is over, the copy gets %q", got)
		}
	})
}

func TestAttemptThatWasInterruptedElsewhere(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		pay(t, locks.Process().Locker, func(_ http.ResponseWriter, r *http.Request) {
			attempt, _ := core.AttemptFromContext(r.Context())
			attempt.Decide(core.EndUnknown)
		})
		if got := pay(t, locks.Locker, answering("again")); got != "outcome_unknown" {
			t.Errorf("the copy gets %q", got)
		}
		if got := pay(t, locks.Locker, answering("again"), core.WithRerunUnknown(true)); got != "again" {
			t.Errorf("with Rerun the copy gets %q", got)
		}
	})
}

func TestAttemptOfAProcessThatDies(t *testing.T) {
	bubble(t, func(t *testing.T, _ func() time.Duration) {
		locks := locktest.New(t, core.WithTTL(10*time.Second))
		elsewhere := locks.Process()
		running, ended := make(chan struct{}), make(chan error, 1)
		go pay(t, elsewhere.Locker, func(_ http.ResponseWriter, r *http.Request) {
			close(running)
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			ended <- context.Cause(r.Context())
		})
		<-running
		elsewhere.Kill()
		if got := pay(t, locks.Locker, answering("again")); got != "busy" {
			t.Errorf("before the TTL is over, the copy gets %q", got)
		}
		time.Sleep(10 * time.Second)
		if got := pay(t, locks.Locker, answering("again")); got != "outcome_unknown" {
			t.Errorf("after the TTL is over, the copy gets %q", got)
		}
		if cause := <-ended; !errors.Is(cause, core.ErrLost) {
			t.Errorf("the dead process has the cause %v", cause)
		}
		wantError(t, errorOf(elsewhere.TryLock(t.Context(), "a")), core.ErrUnavailable)
	})
}

// HoldFor holds the lock of a Middleware. A route of Idempotent has another key.
func TestHoldForDoesNotHoldAttempt(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "8e03978e")
		defer locktest.HoldFor(locks, nethttplock.IdempotencyKey(), r)()
		if got := pay(t, locks.Locker, answering("first")); got != "first" {
			t.Errorf("the request gets %q", got)
		}
	})
}

// Hold holds the lock of a request on a route of Idempotent by the key of EndpointKey.
func TestHoldHoldsAttempt(t *testing.T) {
	both(t, func(t *testing.T) {
		locks := locktest.New(t)
		key, err := core.EndpointKey(http.MethodPost, "/payments", "8e03978e")
		noError(t, err)
		release := locks.Hold("i:" + key)
		if got := pay(t, locks.Locker, answering("first")); got != "busy" {
			t.Errorf("while the key is held, the request gets %q", got)
		}
		release()
		if got := pay(t, locks.Locker, answering("first")); got != "first" {
			t.Errorf("the request gets %q", got)
		}
	})
}

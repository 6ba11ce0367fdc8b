package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// teapot is an error of the function of a key, with an HTTP status of its own.
type teapot int

func (teapot) Error() string { return "short and stout" }

func (t teapot) StatusCode() int { return int(t) }

// keyError returns the error of reading a key whose function fails with err.
func keyError(err error) error {
	_, got := core.KeyOf(func(struct{}) (string, error) { return "", err }).Read(struct{}{})
	return got
}

// wantRefusal fails the test unless err has the refusal, with any Detail unless want has one.
func wantRefusal(t *testing.T, err error, want core.Refusal) {
	t.Helper()
	got, ok := core.RefusalOf(err)
	text := got.Detail
	if want.Detail == "" {
		got.Detail = ""
	}
	if !ok || got != want || text == "" {
		t.Errorf("%v: got %+v, %q, %v; want %+v", err, got, text, ok, want)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const second = time.Second
	tests := []struct {
		err  error
		want core.Refusal
	}{
		{core.ErrBusy, core.Refusal{Code: "busy", HTTP: 409, GRPC: 10, RetryAfter: second}},
		{core.ErrWaitTimeout, core.Refusal{Code: "wait_timeout", HTTP: 409, GRPC: 10, RetryAfter: second}},
		{core.ErrQueueFull, core.Refusal{Code: "queue_full", HTTP: 429, GRPC: 8, RetryAfter: second}},
		{core.ErrOverloaded, core.Refusal{Code: "overloaded", HTTP: 503, GRPC: 8, RetryAfter: second}},
		{core.ErrNoKey, core.Refusal{Code: "no_key", HTTP: 400, GRPC: 3}},
		{core.ErrInvalidKey, core.Refusal{Code: "invalid_key", HTTP: 400, GRPC: 3}},
		{core.ErrBodyTooLarge, core.Refusal{Code: "body_too_large", HTTP: 413, GRPC: 8}},
		{core.ErrUnavailable, core.Refusal{Code: "unavailable", HTTP: 503, GRPC: 14, RetryAfter: second}},
		{&core.Error{Kind: core.ErrClosed}, core.Refusal{Code: "closing", HTTP: 503, GRPC: 14, RetryAfter: second}},
		{core.ErrLost, core.Refusal{Code: "lease_lost", HTTP: 500, GRPC: 2}},
		{core.ErrMaxHold, core.Refusal{Code: "lease_lost", HTTP: 500, GRPC: 2}},
		{core.ErrClosed, core.Refusal{Code: "lease_lost", HTTP: 500, GRPC: 2}},
		{ // a step of the handler was refused, and the handler lost its own lock
			errors.Join(&core.Error{Kind: core.ErrBusy}, core.ErrClosed),
			core.Refusal{Code: "lease_lost", HTTP: 500, GRPC: 2},
		},
		{core.ErrMismatch, core.Refusal{Code: "mismatch", HTTP: 422, GRPC: 9}},
		{core.ErrOutcomeUnknown, core.Refusal{Code: "outcome_unknown", HTTP: 409, GRPC: 9}},
		{core.ErrUnreplayable, core.Refusal{Code: "completed_unreplayable", HTTP: 409, GRPC: 6}},
		{core.ErrNotFound, core.Refusal{Code: "not_found", HTTP: 404, GRPC: 5}},
		{core.ErrChanged, core.Refusal{Code: "changed", HTTP: 409, GRPC: 10}},
		{core.ErrUpgrade, core.Refusal{Code: "upgrade", HTTP: 500, GRPC: 13}},
		{core.ErrHiddenLease, core.Refusal{Code: "hidden_lease", HTTP: 500, GRPC: 13}},
		{keyError(errors.New("x")), core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}},
		{keyError(teapot(418)), core.Refusal{Code: "key_error", HTTP: 418, GRPC: 13}},
		{keyError(teapot(399)), core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}},
		{keyError(teapot(400)), core.Refusal{Code: "key_error", HTTP: 400, GRPC: 13}},
		{keyError(teapot(599)), core.Refusal{Code: "key_error", HTTP: 599, GRPC: 13}},
		{keyError(teapot(600)), core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}},
		{keyError(teapot(200)), core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}},
		{keyError(core.ErrBusy), core.Refusal{Code: "key_error", HTTP: 500, GRPC: 13}},
		{keyError(core.ErrBodyTooLarge), core.Refusal{Code: "body_too_large", HTTP: 413, GRPC: 8}},
		{
			&core.Error{Kind: core.ErrBusy, RetryAfter: 3 * second},
			core.Refusal{Code: "busy", HTTP: 409, GRPC: 10, RetryAfter: 3 * second},
		},
		{
			// A cause that is a context's error does not mean that the caller's context
			// has ended.
			&core.Error{Kind: core.ErrUnavailable, Cause: context.DeadlineExceeded},
			core.Refusal{Code: "unavailable", HTTP: 503, GRPC: 14, RetryAfter: second},
		},
	}
	for _, test := range tests {
		t.Run(test.want.Code, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				wantRefusal(t, err, test.want)
			}
		})
	}
}

func TestOutcomesOfAContextThatEnded(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithRetryAfter(2*time.Second))
	past, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := locks.Lock(past, "k")
	wantRefusal(t, err, core.Refusal{Code: "deadline", HTTP: 503, GRPC: 4, RetryAfter: 2 * time.Second})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = locks.Lock(gone, "k")
	wantRefusal(t, err, core.Refusal{Code: "canceled", HTTP: 499, GRPC: 1})
}

// The text for people says for what the key of the request is.
func TestDetailOfAnIdempotentRequestNamesNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	begin(t, locks, "k")
	for key, want := range map[string]core.Refusal{
		"":                        {Code: "no_key", HTTP: 400, GRPC: 3, Detail: "The request lacks the key by which the server recognizes a retry."},
		strings.Repeat("x", 4097): {Code: "invalid_key", HTTP: 400, GRPC: 3, Detail: "The key by which the server recognizes a retry is malformed."},
		"k": {
			Code: "busy", HTTP: 409, GRPC: 10, RetryAfter: time.Second,
			Detail: "Another request with the same idempotency key has not ended yet.",
		},
	} {
		_, err := locks.Begin(t.Context(), key, []byte("f"))
		wantRefusal(t, err, want)
	}
}

// The error has the settings of the Locker that has refused the request.
func TestRefusalHasTheSettingsOfItsLocker(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithProblemType("/errors/"), core.WithBusyStatus(429))
	begin(t, locks, "k")
	held := lock(t, locks, "k")
	busy := core.Refusal{Code: "busy", HTTP: 429, GRPC: 10, RetryAfter: time.Second, Type: "/errors/busy"}
	wantRefusal(t, errorOf(locks.TryLock(t.Context(), "k")), busy)
	wantRefusal(t, errorOf(locks.Begin(t.Context(), "k", []byte("f"))), busy)
	busy.HTTP = 503
	wantRefusal(t, errorOf(locks.With(core.WithBusyStatus(503), core.WithWait(0)).LockAll(t.Context(), []string{"a", "k"})), busy)
	wantRefusal(t, locks.Do(t.Context(), "", nil), core.Refusal{Code: "no_key", HTTP: 400, GRPC: 3, Type: "/errors/no_key"})
	wantRefusal(t, enter(t.Context(), locks, form{"a": "!bad"}, field("a")), core.Refusal{Code: "invalid_key", HTTP: 400, GRPC: 3, Type: "/errors/invalid_key"})
	wantRefusal(t, errorOf(locks.ReadRecord(t.Context(), "none")), core.Refusal{Code: "not_found", HTTP: 404, GRPC: 5, Type: "/errors/not_found"})
	release(t, held)
}

func TestErrorsWithoutOutcome(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("x"), context.Canceled, context.DeadlineExceeded, core.ErrSkip} {
		if got, ok := core.RefusalOf(err); ok || got != (core.Refusal{}) {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

func TestNarrowErrorsAreTheirWideErrors(t *testing.T) {
	t.Parallel()
	for narrow, wide := range map[error]error{
		core.ErrWaitTimeout: core.ErrBusy, core.ErrClosed: core.ErrUnavailable, core.ErrMaxHold: core.ErrLost,
	} {
		if !errors.Is(narrow, wide) || errors.Is(wide, narrow) {
			t.Errorf("%v and %v", narrow, wide)
		}
	}
}

func FuzzRefusalIsNeverASuccess(f *testing.F) {
	f.Add(200, 1)
	f.Add(204, 0)
	f.Add(-1, 15)
	kinds := []error{
		core.ErrBusy, core.ErrWaitTimeout, core.ErrQueueFull, core.ErrOverloaded, core.ErrNoKey, core.ErrInvalidKey,
		core.ErrBodyTooLarge, core.ErrUnavailable, core.ErrClosed, core.ErrMismatch, core.ErrOutcomeUnknown, core.ErrUnreplayable,
		core.ErrUpgrade, core.ErrHiddenLease,
	}
	f.Fuzz(func(t *testing.T, status, kind int) {
		err := keyError(teapot(status))
		if kind >= 0 && kind < len(kinds) {
			err = errors.Join(teapot(status), &core.Error{Kind: kinds[kind], RetryAfter: time.Duration(status)})
		}
		got, ok := core.RefusalOf(err)
		if !ok || got.HTTP < 400 || got.HTTP > 599 || got.GRPC == 0 || got.GRPC > 16 || got.Code == "" || got.RetryAfter < 0 {
			t.Errorf("%v: %+v", err, got)
		}
	})
}

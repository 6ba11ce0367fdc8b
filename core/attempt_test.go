package core_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// begin begins an attempt that is to run. It fails the test if there is no such attempt.
func begin(t *testing.T, locks *core.Locker, key string) *core.Attempt {
	t.Helper()
	a, err := locks.Begin(t.Context(), key, []byte("f"))
	if err != nil {
		t.Fatalf("begin %q: %v", key, err)
	}
	if record, done := a.Replay(); done {
		t.Fatalf("begin %q: done already, with %q", key, record)
	}
	return a
}

// wantReplay fails the test unless the request is done and has this answer.
func wantReplay(t *testing.T, locks *core.Locker, key, answer string) {
	t.Helper()
	a, err := locks.Begin(t.Context(), key, []byte("f"))
	if err != nil {
		t.Fatalf("begin %q: %v", key, err)
	}
	if record, done := a.Replay(); !done || string(record) != answer {
		t.Errorf("begin %q: done %v with %q, want %q", key, done, record, answer)
	}
}

func testAttempt(t *testing.T, servers *deployment) {
	t.Helper()
	locks, other := servers.newLocker(t, servers.Client(t)), servers.newLocker(t, servers.Client(t))
	a := begin(t, locks, "order")
	if a.Number() != 1 || a.Lease() == nil || a.Lease().Key() != "i:order" || a.MaxRecord() != 1<<20 {
		t.Errorf("attempt %d under %v, up to %d bytes", a.Number(), a.Lease(), a.MaxRecord())
	}
	inner, ok := core.AttemptFromContext(a.Lease().Context())
	if !ok || inner != a {
		t.Error("the context of the attempt does not carry the attempt")
	}
	_, err := other.Begin(t.Context(), "order", []byte("f"))
	wantError(t, err, core.ErrBusy)
	_, err = other.Begin(t.Context(), "order", []byte("g"))
	wantError(t, err, core.ErrMismatch)
	release(t, lock(t, other, "order")) // the lock with the same key is another lock

	release(t, a.Lease())
	_, err = other.Begin(t.Context(), "order", []byte("f"))
	wantError(t, err, core.ErrBusy) // Release on the lease of an attempt does nothing
	for range 2 {
		if err := a.Commit(t.Context(), []byte("answer")); err != nil {
			t.Errorf("commit: %v", err)
		}
	}
	if err := a.Abort(t.Context()); err != nil { // does nothing after the commit
		t.Errorf("abort: %v", err)
	}
	if a.Lease().Context().Err() == nil {
		t.Error("the context has not ended with the attempt")
	}
	wantReplay(t, locks, "order", "answer")
	wantReplay(t, other, "order", "answer")
	_, err = locks.Begin(t.Context(), "order", []byte("g"))
	wantError(t, err, core.ErrMismatch)
}

func testReplayedAttemptCannotBeEnded(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t))
	if err := begin(t, locks, "k").Commit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	a, err := locks.Begin(t.Context(), "k", []byte("f"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Lease() != nil || a.Number() != 0 || a.Decision() != core.Undecided {
		t.Errorf("lease %v, attempt %d", a.Lease(), a.Number())
	}
	for name, end := range map[string]func(context.Context) error{"seal": a.Seal, "abort": a.Abort, "interrupt": a.Interrupt} {
		if end(t.Context()) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if a.Commit(t.Context(), nil) == nil {
		t.Error("commit: no error")
	}
}

func testEndingsOfAnAttempt(t *testing.T, servers *deployment) {
	t.Helper()
	tests := map[string]struct {
		end  func(*core.Attempt, context.Context) error
		next error // of the next request with the key; nil if that request runs
	}{
		"seal":      {(*core.Attempt).Seal, core.ErrUnreplayable},
		"abort":     {(*core.Attempt).Abort, nil},
		"interrupt": {(*core.Attempt).Interrupt, core.ErrInterrupted},
		"a record over the limit": {func(a *core.Attempt, ctx context.Context) error {
			return a.Commit(ctx, bytes.Repeat([]byte("x"), a.MaxRecord()+1))
		}, core.ErrUnreplayable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			locks := servers.newLocker(t, servers.Client(t), core.WithMaxRecord(10))
			if err := test.end(begin(t, locks, name), t.Context()); err != nil {
				t.Fatal(err)
			}
			if test.next == nil {
				_ = begin(t, locks, name).Abort(t.Context())
				return
			}
			_, err := locks.Begin(t.Context(), name, []byte("f"))
			wantError(t, err, test.next)
		})
	}
	locks := servers.newLocker(t, servers.Client(t), core.WithMaxRecord(10))
	if err := begin(t, locks, "at the limit").Commit(t.Context(), []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	wantReplay(t, locks, "at the limit", "0123456789")
}

func testNestedAttemptIsPartOfTheOuter(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t))
	outer := begin(t, locks, "k")
	ctx := lock(t, locks, "another").Context()
	between, err := locks.Lock(outer.Lease().Context(), "between")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := locks.Begin(between.Context(), "k", []byte("g"))
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := core.AttemptFromContext(inner.Lease().Context()); found != inner {
		t.Error("the context of the inner attempt does not carry the attempt")
	}
	inner.Decide(core.Uncertain)
	if outer.Decision() != core.Uncertain || inner.Decision() != core.Uncertain {
		t.Errorf("decided %v outside, %v inside", outer.Decision(), inner.Decision())
	}
	if err := inner.Commit(t.Context(), []byte("inner")); err != nil {
		t.Errorf("commit of the inner attempt: %v", err)
	}
	_, err = locks.Begin(ctx, "k", []byte("f"))
	wantError(t, err, core.ErrBusy)
	release(t, between)
	if err := outer.Commit(t.Context(), []byte("outer")); err != nil {
		t.Fatal(err)
	}
	wantReplay(t, locks, "k", "outer")
}

func TestNoAttemptInContext(t *testing.T) {
	t.Parallel()
	if a, ok := core.AttemptFromContext(t.Context()); ok || a != nil {
		t.Errorf("found %v", a)
	}
	var none *core.Attempt
	none.Decide(core.Uncertain)
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	if a, ok := core.AttemptFromContext(lock(t, locks, "k").Context()); ok || a != nil {
		t.Errorf("found %v in a lock", a)
	}
}

func TestKeysOfAttempts(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	for key, want := range map[string]error{"": core.ErrNoKey, strings.Repeat("x", 5000): core.ErrInvalidKey} {
		_, err := locks.Begin(t.Context(), key, nil)
		wantError(t, err, want)
		wantError(t, locks.Resolve(t.Context(), key, core.Forget(), anAttempt(t)), want)
		_, err = locks.Outcome(t.Context(), key)
		wantError(t, err, want)
	}
	keys := map[string]bool{}
	for _, parts := range [][3]string{
		{"POST", "/a", "k"},
		{"PATCH", "/a", "k"},
		{"POST", "/b", "k"},
		{"POST", "/a", "l"},
		{"POST", "/ak", ""},
		{"POST/", "a", "k"},
		{"", "POST/a", "k"},
	} {
		keys[core.EndpointKey(parts[0], parts[1], parts[2])] = true
	}
	if len(keys) != 7 {
		t.Errorf("7 endpoints and keys make %d keys", len(keys))
	}
}

func TestClosedLockerBeginsNoAttempt(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, redistest.Reuse(t).Client(t))
	if err := locks.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := locks.Begin(t.Context(), "k", nil)
	wantError(t, err, core.ErrClosed)
	wantError(t, locks.Resolve(t.Context(), "k", core.Forget(), anAttempt(t)), core.ErrClosed)
	_, err = locks.Outcome(t.Context(), "k")
	wantError(t, err, core.ErrClosed)
}

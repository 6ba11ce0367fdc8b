package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/nethttplock"
)

// forget resolves the request of a key by NotDone, whatever its outcome is.
func forget(t *testing.T, locks *core.Locker, key string) error {
	t.Helper()
	record, err := locks.ReadRecord(t.Context(), key)
	if err != nil {
		return err
	}
	return locks.Resolve(t.Context(), key, core.NotDone(), record.Attempt)
}

// anAttempt returns the name of an attempt that never began.
func anAttempt(t *testing.T) (id core.AttemptID) {
	t.Helper()
	if err := id.UnmarshalText([]byte(strings.Repeat("0a", 20))); err != nil {
		t.Fatal(err)
	}
	return id
}

// anAnswer returns an answer of an operator with this text.
func anAnswer(t *testing.T, text string) core.Answer {
	t.Helper()
	answer, err := nethttplock.NewAnswer(http.StatusCreated, nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// wantOutcome fails the test unless the request has this outcome, and returns the attempt.
func wantOutcome(t *testing.T, locks *core.Locker, key string, state core.RecordState, number int) core.AttemptID {
	t.Helper()
	got, err := locks.ReadRecord(t.Context(), key)
	if err != nil || got.State != state || got.Number != number || got.Attempt == (core.AttemptID{}) {
		t.Errorf("record %+v, %v; want %v, attempt %d", got, err, state, number)
	}
	if got.Retention <= 0 || got.Retention > 24*time.Hour {
		t.Errorf("kept for %v", got.Retention)
	}
	return got.Attempt
}

// interrupted begins an attempt with the fingerprint of begin, and leaves its outcome unknown.
func interrupted(t *testing.T, locks *core.Locker, key string) core.AttemptID {
	t.Helper()
	if err := begin(t, locks, key).Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return wantOutcome(t, locks, key, core.StateUnknown, 1)
}

// After an operator has said what became of a request, its copies get that.
func testResolutions(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t))
	for name, test := range map[string]struct {
		resolution core.Resolution
		want       error
		state      core.RecordState
		again      error
	}{
		"forget": {core.NotDone(), nil, 0, core.ErrNotFound},
		"done":   {core.Done(), core.ErrUnreplayable, core.StateDone, nil},
		"answer": {core.Answered(anAnswer(t, "paid")), nil, core.StateAnswered, nil},
	} {
		seen := interrupted(t, locks, name)
		if err := locks.Resolve(t.Context(), name, test.resolution, seen); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := locks.Resolve(t.Context(), name, test.resolution, seen); !errors.Is(err, test.again) {
			t.Errorf("%s again: %v", name, err)
		}
		if test.state == 0 {
			_, err := locks.ReadRecord(t.Context(), name)
			wantError(t, err, core.ErrNotFound)
			if a := begin(t, locks, name); a.Number() != 1 {
				t.Errorf("attempt %d", a.Number())
			}
			continue
		}
		if next := wantOutcome(t, locks, name, test.state, 0); next == seen {
			t.Errorf("%s: the attempt has kept its name", name)
		}
		copied, err := locks.Begin(t.Context(), name, []byte("f"))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if record, ok := copied.Replay(); !ok || !strings.Contains(string(record), "paid") {
				t.Errorf("%s: replay %q, %t", name, record, ok)
			}
		}
		_, err = locks.Begin(t.Context(), name, []byte("another"))
		wantError(t, err, core.ErrMismatch)
	}
}

// Resolve changes nothing if the request is not as the operator saw it.
func testResolveComparesTheAttempt(t *testing.T, servers *deployment) {
	t.Helper()
	locks := servers.newLocker(t, servers.Client(t), core.WithRerunUnknown(true))
	resolve := func(key string, seen core.AttemptID) {
		t.Helper()
		for _, r := range []core.Resolution{core.NotDone(), core.Done(), core.Answered(anAnswer(t, "paid"))} {
			wantError(t, locks.Resolve(t.Context(), key, r, seen), core.ErrChanged)
		}
	}
	first := interrupted(t, locks, "k")
	second := begin(t, locks, "k")
	resolve("k", first)
	if err := second.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	resolve("k", first)
	if now := wantOutcome(t, locks, "k", core.StateUnknown, 2); now == first {
		t.Error("two attempts have one name")
	}
	third := begin(t, locks, "k")
	running := wantOutcome(t, locks, "k", core.StateRunning, 3)
	wantError(t, locks.Resolve(t.Context(), "k", core.Done(), running), core.ErrBusy)
	if err := third.Commit(t.Context(), []byte("answer")); err != nil {
		t.Fatal(err)
	}
	resolve("k", running)
	if seen := wantOutcome(t, locks, "k", core.StateAnswered, 0); seen != running {
		t.Error("a commit has changed the name of the attempt")
	}
	wantReplay(t, locks, "k", "answer")
	wantError(t, locks.Resolve(t.Context(), "never begun", core.Done(), first), core.ErrNotFound)
	_, err := locks.ReadRecord(t.Context(), "never begun")
	wantError(t, err, core.ErrNotFound)
}

// The process of the attempt was only cut off. Its late commit is refused.
func testLateCommitAfterResolve(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	process, operator := servers.newLocker(t, rdb), servers.newLocker(t, rdb)
	for name, resolution := range map[string]core.Resolution{"done": core.Done(), "answer": core.Answered(anAnswer(t, "paid"))} {
		a := begin(t, process, name)
		rdb.Del(t.Context(), servers.name("i:"+name)) // as the end of its TTL does
		seen := wantOutcome(t, operator, name, core.StateUnknown, 1)
		if err := operator.Resolve(t.Context(), name, resolution, seen); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Commit(t.Context(), []byte("late")); !errors.Is(err, core.ErrLost) {
			t.Errorf("%s: late commit: %v", name, err)
		}
	}
}

// A resolved record is kept as long as a committed one.
func testRetentionAfterResolve(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, core.WithRetention(time.Hour))
	seen := interrupted(t, locks, "k")
	if err := rdb.PExpire(t.Context(), servers.companion("i:k", "r"), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if err := locks.Resolve(t.Context(), "k", core.Done(), seen); err != nil {
		t.Fatal(err)
	}
	if got, err := locks.ReadRecord(t.Context(), "k"); err != nil || got.Retention < 50*time.Minute || got.Retention > time.Hour {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestResolveNamesTheWrongArgument(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), core.WithMaxAnswer(20))
	seen := interrupted(t, locks, "k")
	for want, err := range map[string]error{
		"the resolution is empty":                         locks.Resolve(t.Context(), "k", core.Resolution{}, seen),
		"seen is empty":                                   locks.Resolve(t.Context(), "k", core.Done(), core.AttemptID{}),
		"the answer is empty":                             locks.Resolve(t.Context(), "k", core.Answered(core.Answer{}), seen),
		"bytes, more than the 20 of WithMaxAnswer: use D": locks.Resolve(t.Context(), "k", core.Answered(anAnswer(t, strings.Repeat("x", 20))), seen),
		"because of WithoutAnswer: use Done":              locks.With(core.WithoutAnswer()).Resolve(t.Context(), "k", core.Answered(anAnswer(t, "x")), seen),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "reqlock: Resolve: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wantOutcome(t, locks, "k", core.StateUnknown, 1)
}

// The name of an attempt can be printed and sent. It contains no token.
func TestAttemptIDAsText(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	a := begin(t, locks, "k")
	seen := wantOutcome(t, locks, "k", core.StateRunning, 1)
	if text := fmt.Sprintf("%v %+v %#v %s", seen, seen, seen, seen); strings.Contains(text, a.Lease().Token()) || !strings.Contains(text, seen.String()) {
		t.Errorf("printed as %s", text)
	}
	sent, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	var received core.AttemptID
	if err := json.Unmarshal(sent, &received); err != nil || received != seen {
		t.Errorf("%s: %v, %v", sent, received, err)
	}
	for _, text := range []string{"0a", strings.Repeat("x", 40), strings.Repeat("0a", 21)} {
		if err := received.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if err := received.UnmarshalText([]byte(strings.ToUpper(seen.String()))); err != nil || received != seen {
		t.Errorf("in upper case: %v, %v", received, err)
	}
	for state, want := range map[core.RecordState]string{
		core.StateRunning: "running", core.StateUnknown: "unknown", core.StateDone: "done",
		core.StateAnswered: "answered", core.StateDamaged: "damaged", 0: "invalid",
	} {
		if state.String() != want {
			t.Errorf("%d is %s", state, state)
		}
	}
}

// A record that cannot be read is resolved by NotDone and Done. Copies of the request get what
// Done says, and no answer of another request.
func testResolveOfDamagedRecord(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	for name, test := range map[string]struct {
		resolution core.Resolution
		want       error // of Resolve
		state      core.RecordState
		copied     error
	}{
		"forget": {core.NotDone(), nil, 0, nil},
		"done":   {core.Done(), nil, core.StateDone, core.ErrUnreplayable},
		"answer": {core.Answered(anAnswer(t, "paid")), core.ErrChanged, core.StateDamaged, core.ErrUnreplayable},
	} {
		interrupted(t, locks, name)
		storetest.ChangeRecord(t, rdb, servers.companion("i:"+name, "r"), map[string]string{"f": ""})
		seen := wantOutcome(t, locks, name, core.StateDamaged, 0)
		wantError(t, locks.Resolve(t.Context(), name, test.resolution, seen), test.want)
		if record, err := locks.ReadRecord(t.Context(), name); record.State != test.state || (test.state == 0) != errors.Is(err, core.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, record, err)
		}
		for _, fingerprint := range []string{"f", "another"} {
			attempt, err := locks.Begin(t.Context(), name, []byte(fingerprint))
			if !errors.Is(err, test.copied) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				if err := attempt.Abort(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestResolveWithoutRedis(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb)
	proxy.Refuse(true)
	defer proxy.Refuse(false) // otherwise reqlock would send the abort again for a minute
	wantError(t, locks.Resolve(t.Context(), "k", core.NotDone(), anAttempt(t)), core.ErrUnavailable)
	_, err := locks.ReadRecord(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	_, err = locks.With(core.WithFailOpen(true)).Begin(t.Context(), "k", nil)
	wantError(t, err, core.ErrUnavailable)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := locks.Resolve(ended, "k", core.NotDone(), anAttempt(t)); !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

package history_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

func TestRecorderRecordsTurns(t *testing.T) {
	t.Parallel()
	locks, r := locktest.New(t, core.WithFencing(true), core.WithTTL(time.Second)), history.NewRecorder()
	lock := func(name string) *history.Lease {
		lease, err := r.Lock(t.Context(), locks.Locker, history.Op{Name: name, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	first := lock("the first")
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	loser := lock("the loser")
	locks.Expire("k")
	suite.Eventually(t, "the loss is noticed", func() bool { return loser.Context().Err() != nil })
	if err := loser.Release(t.Context()); !errors.Is(err, core.ErrLost) || loser.LostAt().IsZero() {
		t.Errorf("lost at %v, and released with %v", loser.LostAt(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Lock(ctx, locks.Locker, history.Op{Name: "one that cancels", Key: "k"}); err == nil {
		t.Error("a cancelled call was granted the lock")
	}
	last := lock("the last")
	r.Begin(history.Op{Kind: history.Lock, Name: "one that waits", Key: "k"})

	holds := r.Of("k").Holds()
	if len(holds) != 4 || len(holds.Service(math.MaxInt64)) != 1 || holds[3].IsServed() {
		t.Fatalf("the holds are %v", holds)
	}
	for i, want := range []struct{ trusted, lost, ended bool }{{true, false, true}, {true, true, true}, {true, false, false}} {
		one := holds[i]
		if one.Asked > one.Granted || one.IsTrusted() != want.trusted || one.Lost != want.lost || (one.Left != math.MaxInt64) != want.ended || one.Ended > one.Left {
			t.Errorf("%d: %+v", i, one)
		}
	}
	if holds[0].Fence == 0 || holds[0].Fence >= holds[1].Fence || holds[0].Episode != first.Token() {
		t.Errorf("fences %d and %d, token %q", holds[0].Fence, holds[1].Fence, holds[0].Episode)
	}
	last.End()
	if h := r.Take(); h.Holds()[2].Left == math.MaxInt64 || len(r.History().Ops) != 0 {
		t.Errorf("took %+v", h)
	}
	if err := last.Lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.json")
	want := history.History{
		Ops: []history.Op{
			{Process: 1, Client: 2, Name: "a },{ in a name", Kind: history.Lock, Key: "k", Call: 3, Return: 4, Outcome: history.Granted, Lease: "l", Episode: "e", Fence: 1 << 53, Limit: history.Unlimited},
			{Kind: history.Release, Key: "k", Call: 5, Lease: "l", ReliedUntil: 9, Unfenced: true, Number: 1, Record: "r"},
		},
		Effects:         []history.Effect{{At: 1, Process: 2, ID: "i", Key: "k", Request: "q", Number: 3, Lease: "l"}},
		ProcessFailures: []history.ProcessFailure{{Process: 1, From: 2, To: 3}},
	}
	if err := history.Save(path, want); err != nil {
		t.Fatal(err)
	}
	var got history.History
	if err := history.Load(path, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if err := os.WriteFile(path, []byte(`{"colour":"red"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := history.Load(path, &got); err == nil {
		t.Error("a file with another field was read")
	}
}

func TestOutcomeOfEachError(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]history.Outcome{
		nil: history.Granted, core.ErrLost: history.Lost, core.ErrOutcomeUnknown: history.Interrupted, core.ErrMismatch: history.Mismatch,
		context.Canceled: history.Deadline, fmt.Errorf("%w: %w", core.ErrWaitTimeout, context.DeadlineExceeded): history.Deadline,
		core.ErrWaitTimeout: history.WaitTimeout, core.ErrBusy: history.Busy, core.ErrUnavailable: history.Unavailable,
		core.ErrClosed: history.Failed, errors.New("another"): history.Failed,
	} {
		if got := history.OutcomeOf(err, history.Granted); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// keptEnv is the path of a history that a test has kept, which is checked again.
const keptEnv = "REQLOCK_HISTORY"

func TestAKeptHistory(t *testing.T) {
	path := os.Getenv(keptEnv)
	if path == "" {
		t.Skip(keptEnv + " is not set")
	}
	var h history.History
	if err := history.Load(path, &h); err != nil {
		t.Fatal(err)
	}
	holds := h.Holds()
	history.Report(t, h, map[string][]string{
		"exclusion": holds.Exclusion(), "limits": holds.Limits(), "encounters": holds.Encounters(), "fences": holds.Fences(),
		"service": holds.Service(math.MaxInt64), "fairness": history.BusyMachine().Monopolies(holds), "order": holds.Overtakings(0),
	})
}

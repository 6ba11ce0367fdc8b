package history_test

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/internal/history"
)

func TestFailuresOfProcessesEndHolds(t *testing.T) {
	t.Parallel()
	h := history.History{
		Ops: []history.Op{
			{Process: 1, Kind: history.Lock, Key: "k", Call: 10, Return: 20, Outcome: history.Granted, Lease: "a"},
			{Process: 1, Kind: history.Lock, Key: "k", Call: 15},
			{Process: 2, Kind: history.Lock, Key: "k", Call: 15, Return: 60, Outcome: history.Granted, Lease: "b"},
			{Process: 2, Kind: history.Release, Key: "k", Call: 70, Return: 75, Outcome: history.Lost, Lease: "b", ReliedUntil: 65},
		},
		ProcessFailures: []history.ProcessFailure{{Process: 1, From: 50}, {Process: 2, From: 30, To: 40}},
	}
	holder, waiter, paused := h.Holds()[0], h.Holds()[1], h.Holds()[2]
	if !holder.Killed || holder.Ended != 50 || holder.Left != 50 || !waiter.Killed || waiter.IsServed() {
		t.Errorf("of the killed process: %+v, %+v", holder, waiter)
	}
	if paused.Killed || paused.Resumed != 40 || paused.Ended != 65 || paused.Left != 70 || !paused.Lost {
		t.Errorf("of the paused process: %+v", paused)
	}
}

func TestLongestGapIsInTheSpan(t *testing.T) {
	t.Parallel()
	h := history.Holds{held("a", 20, 30, 1), held("b", 120, 130, 2), held("c", 220, 230, 3)}
	for _, test := range []struct {
		from, to int64
		want     time.Duration
		why      string
	}{
		{0, 300, 100, "between two grants"},
		{30, 110, 80, "no grant in the span"},
		{110, 130, 10, "before the one grant, or after it"},
		{200, 1000, 780, "after the last grant"},
		{20, 230, 100, "the grant at the beginning does not count"},
	} {
		if got := h.LongestGap(test.from, test.to); got != test.want {
			t.Errorf("%s: got %d, want %d", test.why, got, test.want)
		}
	}
}

package validate

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestCorrectHistoriesHaveNoViolations(t *testing.T) {
	t.Parallel()
	outcomes := map[history.Outcome]int{}
	for seed := range uint64(200) {
		h := simulate(seed, 400, seed%4 != 3)
		if found := All(h); len(found) > 0 {
			t.Fatalf("seed %d: %v", seed, found)
		}
		for _, op := range h.Ops {
			outcomes[op.Outcome]++
		}
	}
	for _, want := range []history.Outcome{
		history.None, history.Granted, history.Replayed, history.Busy, history.Unavailable, history.Lost, history.Interrupted, history.Done,
	} {
		if outcomes[want] < 100 {
			t.Errorf("%d outcomes %q: the histories show little", outcomes[want], want)
		}
	}
}

// mutations make a correct history wrong. Each returns false if the history has no place
// for it.
var mutations = []struct {
	name  string
	check string // that must find it
	make  func(*history.History) bool
}{
	{"two holders", "mutual-exclusion", func(h *history.History) bool { return addHolder(h, false) }},
	{"granted before the release", "linearizability", func(h *history.History) bool { return addHolder(h, true) }},
	{"a fence goes back", "fences", func(h *history.History) bool {
		return changeLastPair(h, history.Lock, history.Granted, func(a, b *history.Op) bool {
			if b.Limit != 0 || a.Fence == 0 {
				return false
			}
			b.Fence = a.Fence
			return true
		})
	}},
	{"one more than the limit", "limit", lowerLimits},
	{"a wrong replay", "attempts", func(h *history.History) bool {
		return changeLast(h, history.Begin, history.Replayed, func(op *history.Op) bool {
			op.Record = "of no commit"
			return true
		})
	}},
	{"run again after the answer", "attempts", func(h *history.History) bool {
		return changeLast(h, history.Commit, history.Done, func(op *history.Op) bool {
			h.Ops = append(h.Ops, history.Op{
				Process: 9999, Kind: history.Begin, Key: op.Key, Call: op.Return + 1, Return: op.Return + 2, Outcome: history.Granted,
				Lease: "again", Episode: "again", Fence: never, ValidUntil: op.Return + 3, Number: 1, Policy: reject,
			})
			return true
		})
	}},
	{"a replay before the answer", "attempts", func(h *history.History) bool {
		return changeLast(h, history.Begin, history.Replayed, func(replay *history.Op) bool {
			return changeLast(h, history.Commit, history.Done, func(commit *history.Op) bool {
				if commit.Record != replay.Record {
					return false
				}
				replay.Call, replay.Return = commit.Call-2, commit.Call-1
				return true
			})
		})
	}},
	{"a call never returns", "liveness", func(h *history.History) bool {
		return changeLast(h, history.Lock, history.Granted, func(op *history.Op) bool {
			h.Ops = append(h.Ops, history.Op{Process: 9999, Kind: history.Lock, Key: op.Key, Call: op.Call})
			return true
		})
	}},
	{"a lost update", "fenced-updates", func(h *history.History) bool {
		for i := len(h.Accesses) - 1; i >= 0; i-- {
			if a := &h.Accesses[i]; a.Fenced && a.Version > 0 {
				a.Version--
				return true
			}
		}
		return false
	}},
	{"late notice", "lease-end", func(h *history.History) bool {
		return changeLast(h, history.LeaseEnd, history.None, func(op *history.Op) bool {
			if slices.ContainsFunc(h.ProcessFailures, func(d history.ProcessFailure) bool { return d.Process == op.Process }) {
				return false
			}
			op.Call = op.ValidUntil + int64(schedulingDelay) + 1
			ended := false
			for i := range h.Ops {
				if end := &h.Ops[i]; end.Lease == op.Lease && (end.Kind == history.Release || end.Kind == history.Commit || end.Kind == history.Abort) {
					end.Call, end.Return = op.Call+1, max(end.Return, op.Call+2)
					ended = end.Outcome != history.None
				}
			}
			return ended
		})
	}},
}

// changeLast changes the last call of a kind that can be changed.
func changeLast(h *history.History, kind history.Kind, outcome history.Outcome, change func(*history.Op) bool) bool {
	for i := len(h.Ops) - 1; i >= 0; i-- {
		if op := &h.Ops[i]; op.Kind == kind && op.Outcome == outcome && change(op) {
			return true
		}
	}
	return false
}

// changeLastPair changes the last two consecutive calls of a key that are not close to a
// loss of data.
func changeLastPair(h *history.History, kind history.Kind, outcome history.Outcome, change func(a, b *history.Op) bool) bool {
	return changeLast(h, kind, outcome, func(b *history.Op) bool {
		return hasNoLossAfter(h, b.Call) && changeLast(h, kind, outcome, func(a *history.Op) bool {
			return a.Key == b.Key && a.Return < b.Call && change(a, b)
		})
	})
}

// hasNoLossAfter reports whether no data is lost after a time.
func hasNoLossAfter(h *history.History, from int64) bool {
	return !slices.ContainsFunc(h.Disruptions, func(t history.Disruption) bool { return t.Loss && t.To > from })
}

// addHolder adds a lease that is granted while another lease is held. If idle is set, the
// holder of that lease does not rely on it any more, but has not released it.
func addHolder(h *history.History, idle bool) bool {
	return changeLast(h, history.Release, history.Done, func(end *history.Op) bool {
		return changeLast(h, history.Lock, history.Granted, func(grant *history.Op) bool {
			if grant.Lease != end.Lease || end.Call-grant.Return < 10 || end.Return >= end.ValidUntil || !hasNoLossAfter(h, grant.Call) {
				return false
			}
			if idle {
				end.ReliedUntil = grant.Return + 1
			}
			from := grant.Return + 2
			h.Ops = append(h.Ops, history.Op{
				Process: 9999, Kind: history.Lock, Key: grant.Key, Call: from, Return: from + 1, Outcome: history.Granted,
				Lease: "intruder", Episode: "intruder", Fence: grant.Fence + 1, ValidUntil: from + 4,
			}, history.Op{
				Process: 9999, Kind: history.Release, Key: grant.Key, Call: from + 2, Return: from + 3, Outcome: history.Done,
				Lease: "intruder", ReliedUntil: from + 2, ValidUntil: from + 4,
			})
			return true
		})
	})
}

// lowerLimits makes the shared leases of a key, of which two were out together, permits of a
// limit of one.
func lowerLimits(h *history.History) bool {
	return changeLast(h, history.Lock, history.Granted, func(b *history.Op) bool {
		return b.IsShared() && hasNoLossAfter(h, 0) && changeLast(h, history.Lock, history.Granted, func(a *history.Op) bool {
			if a == b || !a.IsShared() || a.Key != b.Key || a.Return > b.Return || !isReliedOnAt(h, a, b.Return) || !isReliedOnAt(h, b, b.Return) {
				return false
			}
			for i := range h.Ops {
				if op := &h.Ops[i]; op.Key == a.Key && op.IsShared() {
					op.Limit = 1
				}
			}
			return true
		})
	})
}

// isReliedOnAt reports whether the holder of a lease released it later than a time, and
// relied on it until then.
func isReliedOnAt(h *history.History, grant *history.Op, at int64) bool {
	return slices.ContainsFunc(h.Ops, func(end history.Op) bool {
		return end.Kind == history.Release && end.Lease == grant.Lease && end.ReliedUntil > at
	})
}

func TestMutationsAreFound(t *testing.T) {
	t.Parallel()
	for _, mistake := range mutations {
		t.Run(mistake.name, func(t *testing.T) {
			t.Parallel()
			made := 0
			for seed := range uint64(40) {
				h := simulate(seed, 400, seed%4 != 3)
				if !mistake.make(h) {
					continue
				}
				made++
				if found := All(h); !slices.Contains(checksOf(found), mistake.check) {
					t.Errorf("seed %d: not found by %s: %v", seed, mistake.check, found)
				}
			}
			if made < 10 {
				t.Errorf("only %d histories had a place for it", made)
			}
		})
	}
}

func TestFlawedServersAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flaw     flaw
		check    string
		lossless bool
	}{
		{secondHolder, "linearizability", false},
		{secondHolder, "mutual-exclusion", false},
		{releasesAny, "linearizability", false},
		{sameFence, "fences", false},
		{sameFence, "linearizability", false},
		{rerunsDone, "attempts", false},
		{countsFirst, "attempts", false},
		{countsFirst, "effects", false},
		{ignoresLimit, "limit", false},
		{ignoresLimit, "linearizability", false},
		{joinsWriter, "mutual-exclusion", false},
		{joinsWriter, "linearizability", false},
		{joinsWriter, "shared-reads", false},
		{passesQueue, "order", true},
		{strandsQueue, "idle", true},
	} {
		t.Run(string(test.flaw)+", by "+test.check, func(t *testing.T) {
			t.Parallel()
			found := 0
			for seed := range uint64(20) {
				if slices.Contains(checksOf(All(simulateFlawed(seed, 1000, !test.lossless, test.flaw))), test.check) {
					found++
				}
			}
			if found < 5 {
				t.Errorf("found in %d of 20 histories", found)
			}
		})
	}
}

// The test logs how long the search takes. It fails only if the search does not end within
// its timeout.
func TestLongHistoryIsValidatedInTime(t *testing.T) {
	t.Parallel()
	h := simulate(2, 2000, true)
	unknown := 0
	for _, op := range h.Ops {
		if op.Outcome == history.None && op.Kind != history.LeaseEnd || op.Outcome == history.Unavailable {
			unknown++
		}
	}
	begun := time.Now()
	found := All(h)
	t.Logf("%d calls, %d of them unknown, took %v", len(h.Ops), unknown, time.Since(begun))
	if len(found) > 0 || unknown < 30 {
		t.Errorf("%d unknown, found %v", unknown, found)
	}
}

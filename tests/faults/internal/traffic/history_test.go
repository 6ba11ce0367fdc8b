package traffic

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// countOutcomes counts calls by kind and outcome.
func countOutcomes(ops []history.Op) map[history.Kind]map[history.Outcome]int {
	count := map[history.Kind]map[history.Outcome]int{}
	for _, op := range ops {
		if count[op.Kind] == nil {
			count[op.Kind] = map[history.Outcome]int{}
		}
		count[op.Kind][op.Outcome]++
	}
	return count
}

// A leaseKind is a key and the limit of its leases.
type leaseKind struct {
	key   string
	limit int
}

// sharedKinds are the leases of the keys that may be shared.
func sharedKinds() []leaseKind {
	return []leaseKind{
		{"permits", 3}, {"readers", 0}, {"readers", history.Unlimited},
		{"mixed", 0}, {"mixed", 2}, {"mixed", 4}, {"mixed", history.Unlimited},
	}
}

// isFenced reports whether the leases of a key have fencing numbers.
func isFenced(key string) bool { return key != "lock-2" && key != "permits" && key != "mixed" }

// countLeases counts the granted leases.
func countLeases(ops []history.Op) map[leaseKind]int {
	count := map[leaseKind]int{}
	for _, op := range ops {
		if op.Outcome == history.Granted {
			count[leaseKind{op.Key, op.Limit}]++
		}
	}
	return count
}

// lostUpdates counts the writes that are based on the same version as an earlier one.
func lostUpdates(accesses []history.Access, fenced bool) (lost int) {
	type version struct {
		key     string
		version int64
	}
	built := map[version]bool{}
	for _, a := range accesses {
		if on := (version{a.Key, a.Version}); a.Write && a.Fenced == fenced && !a.Refused {
			if built[on] {
				lost++
			}
			built[on] = true
		}
	}
	return lost
}

func TestAHistoryHasCallsOfAllKinds(t *testing.T) {
	c, _ := startOnServer(t, Settings{Seed: 1, TTL: 2 * time.Second}) // longer than any pause of the machine
	common := map[history.Kind][]history.Outcome{
		history.Lock:    {history.Granted},
		history.Try:     {history.Granted, history.Busy},
		history.Extend:  {history.Done},
		history.Release: {history.Done, history.Deadline},
		history.Begin:   {history.Granted, history.Replayed, history.Interrupted, history.Unreplayable, history.Mismatch},
		history.Commit:  {history.Done},
		history.Seal:    {history.Done},
		history.Abort:   {history.Done},
	}
	suite.Eventually(t, "all kinds of calls were made", func() bool {
		ops := c.journal.calls(func(history.Op) bool { return true })
		leases := countLeases(ops)
		for _, kind := range sharedKinds() {
			if leases[kind] == 0 {
				return false
			}
		}
		count := countOutcomes(ops)
		for kind, outcomes := range common {
			for _, outcome := range outcomes {
				if count[kind][outcome] == 0 {
					return false
				}
			}
		}
		return true
	})
	h := finish(c)
	t.Log(countOutcomes(h.Ops))
	if !slices.IsSortedFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) }) {
		t.Error("the calls are not in their order")
	}
	clients, leases, locks := map[int]bool{}, map[string]history.Op{}, 0
	for _, op := range h.Ops {
		clients[op.Client] = true
		if op.Client/2 != op.Process || op.Outcome == history.None || op.Return < op.Call {
			t.Errorf("%+v", op)
		}
		if op.Outcome != history.Granted {
			continue
		}
		if op.Kind != history.Begin {
			locks++
		}
		if _, twice := leases[op.Lease]; twice || op.Lease == "" || op.Episode == "" || (op.Fence == 0) == isFenced(op.Key) || op.ValidUntil < op.Call {
			t.Errorf("%+v", op)
		}
		leases[op.Lease] = op
	}
	if len(clients) != 8 || locks != c.Grants() || len(h.ProcessFailures) > 0 {
		t.Errorf("clients %v, %d locks and %d grants, deaths %v", clients, locks, c.Grants(), h.ProcessFailures)
	}
	checkEnds(t, h.Ops, leases)
	checkAccesses(t, h, leases)
}

// checkEnds checks that each lease is ended by its client, and that the client relied on it
// only while it was granted.
func checkEnds(t *testing.T, ops []history.Op, leases map[string]history.Op) {
	t.Helper()
	ended, records := map[string]bool{}, map[string]string{}
	for _, op := range ops {
		switch op.Kind {
		case history.Release, history.Commit, history.Seal, history.Abort:
			ended[op.Lease] = true
			grant := leases[op.Lease]
			if op.Client != grant.Client || op.Key != grant.Key || op.Fence != grant.Fence || op.Episode != grant.Episode ||
				op.Number != grant.Number || op.ReliedUntil < grant.Return || op.ReliedUntil > op.Call || op.ReliedUntil > op.ValidUntil {
				t.Errorf("%+v ends %+v", op, grant)
			}
		}
		if op.Kind == history.Commit {
			if records[op.Record] != "" || op.Record == "" {
				t.Errorf("%+v", op)
			}
			records[op.Record] = op.Key
		}
	}
	for name, grant := range leases {
		if !ended[name] {
			t.Errorf("%+v is never ended", grant)
		}
	}
	for _, op := range ops {
		if op.Outcome == history.Replayed && records[op.Record] != op.Key {
			t.Errorf("no commit stored this: %+v", op)
		}
	}
}

// checkAccesses checks that clients accessed the resource only under leases.
func checkAccesses(t *testing.T, h history.History, leases map[string]history.Op) {
	t.Helper()
	written := map[bool]map[string]int64{false: {}, true: {}}
	for _, a := range h.Accesses {
		if a.Write {
			written[a.Fenced][a.Key]++
			if (a.CheckedAt == 0) != a.Fenced || a.CheckedAt > a.At {
				t.Errorf("only unfenced writes check the lease, and before the write: %+v", a)
			}
		}
		if !a.Write && a.CheckedAt > a.At {
			t.Errorf("read before the check of the lease: %+v", a)
		}
		if !a.Write && !a.Refused && a.Version != written[a.Fenced][a.Key] {
			t.Errorf("read after %d writes: %+v", written[a.Fenced][a.Key], a)
		}
	}
	for fenced, keys := range written {
		want := 5 // no holder of a permit writes
		if fenced {
			want = 3
		}
		if len(keys) != want || lostUpdates(h.Accesses, fenced) > 0 {
			t.Errorf("fenced %v: written %v, %d updates lost", fenced, keys, lostUpdates(h.Accesses, fenced))
		}
	}
	if len(h.Effects) == 0 {
		t.Error("no payment was made")
	}
	for _, e := range h.Effects {
		if grant := leases[e.Lease]; grant.Kind != history.Begin || grant.Key != e.Key || grant.Number != e.Number || e.At < grant.Return {
			t.Errorf("%+v under %+v", e, grant)
		}
	}
}

// Holders that do not check their lease lose updates of the unfenced register. Otherwise a
// history could not show a lost update.
func TestCarelessHoldersLoseUpdates(t *testing.T) {
	t.Parallel()
	c, _ := startOnServer(t, Settings{Careless: true, Attempts: -1, TTL: 200 * time.Millisecond})
	suite.Eventually(t, "an update was lost", func() bool { return lostUpdates(c.resource.Accesses(), false) > 0 })
	h := finish(c)
	if lost := lostUpdates(h.Accesses, true); lost > 0 {
		t.Errorf("%d updates are lost in spite of their fences", lost)
	}
	count := countOutcomes(h.Ops)
	if count[history.LeaseEnd][history.Lost] == 0 || count[history.Release][history.Lost] == 0 {
		t.Errorf("no client was notified of a loss: %v", count)
	}
	for _, op := range h.Ops {
		if op.Kind == history.Release && op.Outcome == history.Lost && op.ReliedUntil == op.Call {
			t.Errorf("lost, and believed in to the end: %+v", op)
		}
	}
}

// A key that is kept locked has a new holder only after its minimal hold.
func TestSomeHoldersKeepTheirKeyLocked(t *testing.T) {
	t.Parallel()
	const minHold = 100 * time.Millisecond
	c, _ := startOnServer(t, Settings{MinHold: minHold, TTL: 2 * time.Second})
	kept := func() map[history.Kind]int {
		count := map[history.Kind]int{}
		for _, op := range c.journal.calls(func(op history.Op) bool { return op.Outcome == history.Granted && op.MinHold > 0 }) {
			count[op.Kind]++
			if op.MinHold != minHold.Nanoseconds() {
				t.Errorf("%+v", op)
			}
		}
		return count
	}
	suite.Eventually(t, "waiters and others keep a key locked", func() bool {
		count := kept()
		return count[history.Lock] > 0 && count[history.Try] > 0
	})
	finish(c)
}

package client

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Of two attempts at a payment, the one that has lost its lease ends while the other one runs.
// Without such histories, the campaign would not notice that both are committed.
func TestAttemptEndsAfterAnotherOneHasBegun(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	h, attempt, outcome := b.beginAttempt("pay-1", history.Rerun, false)
	if h == nil {
		t.Fatal(outcome)
	}
	redistest.Lose(t, b.server.Client(t), "the lease is lost", func() bool { return h.lease.Context().Err() != nil }, "reqlock:i:pay-1")
	recoverInjected(func() { b.retryAndEnd(h, attempt, history.Rerun) })
	ops := b.reportedOps(t)
	second := slices.IndexFunc(ops, func(op history.Op) bool { return op.Kind == history.Begin && op.Number == 2 })
	first := slices.IndexFunc(ops, func(op history.Op) bool { return op.Kind == history.Commit && op.Lease == h.name })
	if second < 0 || first < 0 || ops[second].Outcome != history.Granted || ops[second].Return > ops[first].Call {
		t.Fatalf("%+v", ops)
	}
	if ops[first].Outcome == history.Done {
		t.Errorf("the commit of the first attempt: %s", ops[first].Outcome)
	}
	ended := func(op history.Op) bool { return op.Kind == history.Commit && op.Lease == ops[second].Lease }
	if last := slices.IndexFunc(ops, ended); last >= 0 && (ops[last].Outcome != history.Done || ops[last].Call < ops[first].Return) {
		t.Errorf("the second attempt: %+v", ops[last])
	}
}

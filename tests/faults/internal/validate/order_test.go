package validate

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// In these histories a waiter has joined the queue 0.5 s after its call at 10 ms.
func TestOrder(t *testing.T) {
	t.Parallel()
	bad := []string{"order"}
	// held adds a holder from the beginning to 2 s.
	held := func(t *builder, limit int) {
		t.share(1, "k", "held", limit, 1, 3).ValidUntil = 9000 * ms
		t.release("held", 2000, 2001).ValidUntil = 9000 * ms
	}
	// pass adds a lease of another process that is short.
	pass := func(t *builder, process int, lease string, limit int, asked, from int64) {
		t.share(process, "k", lease, limit, asked, from).ValidUntil = 9000 * ms
		t.release(lease, from+1, from+2).ValidUntil = 9000 * ms
	}
	writer := func(t *builder, granted int64) {
		t.grant(2, "k", "w", 10, granted, 0).ValidUntil = 9000 * ms
		t.release("w", granted+1, granted+2).ValidUntil = 9000 * ms
	}
	runSharedCases(t, []testCase{
		{"a writer before a later reader", func(t *builder) {
			held(t, unlimited)
			writer(t, 2002)
			pass(t, 3, "r", unlimited, 1000, 2005)
		}, nil},
		{"later readers beside a reader, while a writer waits", func(t *builder) {
			held(t, unlimited)
			writer(t, 2002)
			pass(t, 3, "r", unlimited, 800, 801)
			pass(t, 4, "s", unlimited, 1100, 1101)
		}, bad},
		{"readers of one phase together, before a writer", func(t *builder) {
			held(t, unlimited)
			writer(t, 2002)
			pass(t, 3, "r", unlimited, 800, 801)
			pass(t, 4, "s", unlimited, 800, 850)
		}, nil},
		{"a reader that is as early as the writer", func(t *builder) {
			held(t, unlimited)
			writer(t, 2002)
			pass(t, 3, "r", unlimited, 400, 800)
			pass(t, 4, "s", unlimited, 400, 1200)
		}, nil},
		{"a later writer before a writer", func(t *builder) {
			held(t, unlimited)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, bad},
		{"a later writer before a reader", func(t *builder) {
			held(t, 0)
			pass(t, 2, "r", unlimited, 10, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, bad},
		{"a later permit before a permit", func(t *builder) {
			held(t, 1)
			pass(t, 2, "r", 1, 10, 2302)
			pass(t, 3, "x", 1, 600, 2005)
		}, bad},
		{"a Try that passes a writer", func(t *builder) {
			held(t, unlimited)
			writer(t, 2302)
			pass(t, 3, "r", unlimited, 700, 701)
			pass(t, 4, "s", unlimited, 1700, 1701)
			t.lease("s").Kind = history.Try
		}, bad},
		{"a lease that is handed off within a process", func(t *builder) {
			held(t, 0)
			pass(t, 1, "p", 0, 900, 2003)
			t.lease("p").Episode = "held"
			writer(t, 2302)
		}, nil},
		{"the place of an earlier call, which another lease has served", func(t *builder) {
			held(t, unlimited)
			writer(t, 2302)
			pass(t, 3, "early", unlimited, 400, 1000)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"two leases in the place of one earlier call", func(t *builder) {
			held(t, unlimited)
			writer(t, 2502)
			pass(t, 3, "early", unlimited, 400, 1000)
			pass(t, 3, "x", 0, 600, 2005)
			pass(t, 3, "y", 0, 600, 2105)
		}, bad},
		{"the second waiter of a process", func(t *builder) {
			held(t, unlimited)
			t.call(2, history.Lock, "k", 5, 0, history.None)
			t.kill(2, 50_000)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"a waiter of a process that held a lease", func(t *builder) {
			held(t, unlimited)
			t.grant(2, "k", "own", 4, 5, 0).ValidUntil = 9000 * ms
			t.release("own", 11, 12).ValidUntil = 9000 * ms
			t.lease("held").Call, t.lease("held").Return = 12*ms, 13*ms
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"a waiter of a process that held a lease of another limit", func(t *builder) {
			held(t, unlimited)
			pass(t, 2, "own", unlimited, 2, 11)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, bad},
		{"a waiter of a process that was paused", func(t *builder) {
			held(t, unlimited)
			t.pause(2, 100, 200)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"a machine that stalled for longer than the waiter was passed", func(t *builder) {
			held(t, unlimited)
			t.disrupt(Stalled, 700, 750)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"a machine that stalled for less", func(t *builder) {
			held(t, unlimited)
			t.disrupt(Stalled, 700, 720)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, bad},
		{"a waiter that was informed late of its grant", func(t *builder) {
			held(t, unlimited)
			writer(t, 2250)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
		{"a key that expired", func(t *builder) {
			t.share(1, "k", "held", 0, 1, 3).ValidUntil = 2000 * ms
			t.kill(1, 1600)
			writer(t, 2302)
			pass(t, 3, "x", 0, 600, 2005)
		}, nil},
	})
}

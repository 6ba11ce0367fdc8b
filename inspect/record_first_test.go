package inspect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// The reference stays with the record that an operator has resolved. What another client has written in its
// place is left out, and so is the reference of another attempt.
func TestRecordHasReferenceOfItsAttempt(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb, core.WithReference(func(context.Context) string { return "request 1" })), newInspector(t, rdb)
	attempt := must(locks.Begin(t.Context(), "k", nil))(t)
	_ = attempt.Unknown(t.Context(), nil)
	if err := i.Resolve(t.Context(), must(i.Record(t.Context(), "k"))(t), core.Done()); err != nil {
		t.Fatal(err)
	}
	if record := must(i.Record(t.Context(), "k"))(t); record.State != core.StateDone || record.First != "request 1" {
		t.Errorf("%+v", record)
	}
	const name = "{reqlock:i:k}:r"
	noted := rdb.HGet(t.Context(), name, "r").Val()
	for _, bad := range []string{"00000000request 1", noted[:8] + "\x1b[2J", noted[:8] + strings.Repeat("a", 65), noted[:7]} {
		if err := rdb.HSet(t.Context(), name, "r", bad).Err(); err != nil {
			t.Fatal(err)
		}
		if record := must(i.Record(t.Context(), "k"))(t); record.First != "" {
			t.Errorf("%q: %+v", bad, record)
		}
	}
}

package inspect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The reference stays with the record that an operator has resolved. What another client has written in its
// place is left out.
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
	for _, bad := range []string{"\x1b[2J", strings.Repeat("a", 65), strings.Repeat("a", 300)} {
		storetest.ChangeRecord(t, rdb, name, map[string]string{"r": bad})
		if record := must(i.Record(t.Context(), "k"))(t); record.First != "" {
			t.Errorf("%q: %+v", bad, record)
		}
	}
}

package validate

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestPayloadsAndSeals(t *testing.T) {
	t.Parallel()
	begin := func(t *builder, from int64, outcome history.Outcome, other bool) {
		op := t.call(2, history.Begin, "p", from, from+1, outcome)
		op.Policy, op.Other = history.Reject, other
	}
	committed := func(t *builder) {
		t.begin(1, "p", "a", 1, 2, 1, history.Reject)
		t.commit("a", "x", 10, 11, history.Done)
	}
	sealed := func(t *builder, outcome history.Outcome) {
		t.begin(1, "p", "a", 1, 2, 1, history.Reject)
		t.end(history.Seal, "a", 10, 11, outcome)
	}
	for _, test := range []struct {
		name string
		tell func(*builder)
		want string // the check that finds it
	}{
		{"another payload is refused", func(t *builder) { committed(t); begin(t, 20, history.Mismatch, true) }, ""},
		{"the same is refused", func(t *builder) { committed(t); begin(t, 20, history.Mismatch, false) }, "errors"},
		{"it is refused after another one may have run", func(t *builder) {
			t.disrupt("cut", 19, 22)
			begin(t, 20, history.Unavailable, true)
			begin(t, 30, history.Mismatch, false)
		}, ""},
		{"another payload gets the answer", func(t *builder) {
			committed(t)
			op := t.call(2, history.Begin, "p", 20, 21, history.Replayed)
			op.Record, op.Other = "x", true
		}, "errors"},
		{"a sealed one is not replayed", func(t *builder) { sealed(t, history.Done); begin(t, 20, history.Unreplayable, false) }, ""},
		{"one that may be sealed", func(t *builder) {
			t.disrupt("cut", 9, 12)
			sealed(t, history.Unavailable)
			begin(t, 20, history.Unreplayable, false)
		}, ""},
		{"it was not sealed", func(t *builder) { begin(t, 20, history.Unreplayable, false) }, "errors"},
		{"it was committed", func(t *builder) { committed(t); begin(t, 20, history.Unreplayable, false) }, "errors"},
		{"another attempt at it was sealed before", func(t *builder) {
			t.disrupt("cut", 1, 100)
			t.begin(1, "p", "a", 1, 2, 1, history.Reject)
			t.end(history.Seal, "a", 10, 11, history.Lost)
			t.begin(2, "p", "b", 3, 4, 1, history.Reject)
			t.commit("b", "x", 12, 13, history.Done)
			begin(t, 20, history.Unreplayable, false)
		}, "attempts"},
		{"a sealed one runs again", func(t *builder) {
			sealed(t, history.Done)
			t.begin(2, "p", "b", 20, 21, 1, history.Rerun)
			t.commit("b", "y", 30, 31, history.Done)
		}, "attempts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := All(build(test.tell))
			if test.want == "" && len(found) > 0 || test.want != "" && !slices.Contains(checksOf(found), test.want) {
				t.Errorf("found %v, want %q", found, test.want)
			}
		})
	}
}

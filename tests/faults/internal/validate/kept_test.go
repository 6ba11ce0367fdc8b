package validate

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// loadKept returns a history that was kept of a run, or the part of it that matters.
func loadKept(t *testing.T, name string) *history.History {
	t.Helper()
	h, err := history.Load(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// In this history a renewal and the next one of the same lease are on their way. The
// reply to the earlier one comes last, and brings its block of fencing numbers back:
// the holders after that have numbers below those of the holders before.
//
// It is the part of a run that is about the key and the time concerned: with the
// mutant late-renewal-brings-old-numbers, the fault replies-to-renewals-are-late on
// a server, and the seed 2.
func TestNumbersThatAnOvertakenRenewalBringsBackAreFound(t *testing.T) {
	t.Parallel()
	h := loadKept(t, "overtaken-renewal")
	if got, want := checksOf(All(h)), []string{"fences", "linearizability"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// The same, but the numbers of the overtaken block come behind all that had been
// given, in the same order.
func TestTheSameWithNumbersThatRiseIsFoundInOrder(t *testing.T) {
	t.Parallel()
	h := loadKept(t, "overtaken-renewal")
	if raised := raiseFences(h); raised == 0 {
		t.Fatal("no number fell")
	}
	if found := All(h); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// raiseFences makes the numbers of leases rise that fell, and returns how many leases that
// were. The first that fell comes next to the highest before it, and the distances
// between them stay.
func raiseFences(h *history.History) (leases int) {
	var granted []*history.Op
	for i := range h.Ops {
		if h.Ops[i].Outcome == history.Granted {
			granted = append(granted, &h.Ops[i])
		}
	}
	slices.SortFunc(granted, func(a, b *history.Op) int { return int(a.Return - b.Return) })
	highest, by := int64(0), int64(0)
	raised := map[string]int64{}
	for _, op := range granted {
		if op.Fence > highest {
			highest = op.Fence
			continue
		}
		if by == 0 {
			by = highest + 1 - op.Fence
		}
		raised[op.Lease] = op.Fence + by
	}
	for i := range h.Ops {
		if fence, fell := raised[h.Ops[i].Lease]; fell {
			h.Ops[i].Fence = fence
		}
	}
	return len(raised)
}

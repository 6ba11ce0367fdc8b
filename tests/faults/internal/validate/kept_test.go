package validate

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// loadKept returns a kept history, or the relevant part of it.
func loadKept(t *testing.T, name string) *history.History {
	t.Helper()
	h, err := history.Load(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// In this history the reply to a renewal arrives after the reply to the next renewal of the
// same lease, and brings an older block of fencing numbers back. The next holders have
// numbers below those of earlier holders.
//
// It is the part of a run that concerns the key and the time: the mutant
// late-renewal-restores-old-numbers, the fault replies-to-renewals-are-late on a server, seed
// 2.
func TestNumbersThatAnOvertakenRenewalBringsBackAreFound(t *testing.T) {
	t.Parallel()
	h := loadKept(t, "overtaken-renewal")
	if got, want := checksOf(All(h)), []string{"fences", "linearizability"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// In this variant the numbers of the older block come after all that were granted, in the
// same order.
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

// raiseFences raises the numbers that are too low, and returns the number of leases that it
// changed. The first one follows the highest earlier number, and the differences between
// them stay.
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

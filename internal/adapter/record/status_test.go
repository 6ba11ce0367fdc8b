package record_test

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

//faults:row 50: statuses
func TestStorable(t *testing.T) {
	t.Parallel()
	refused := []int{401, 403, 408, 409, 423, 425, 429, 499}
	for status := -1; status <= 1100; status++ {
		want := status >= 200 && status <= 499 && !slices.Contains(refused, status)
		if record.Storable(status) != want {
			t.Errorf("Storable(%d) is not %v", status, want)
		}
	}
}

// No answer with an uncertain status is stored by default.
//
//faults:row 50: statuses
func TestUncertain(t *testing.T) {
	t.Parallel()
	for status := -1; status <= 1100; status++ {
		want := slices.Contains([]int{499, 500, 502, 504}, status)
		if record.Uncertain(status) != want || want && record.Storable(status) {
			t.Errorf("Uncertain(%d) is not %v, or the answer is stored", status, want)
		}
	}
}

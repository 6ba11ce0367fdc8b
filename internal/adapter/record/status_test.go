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

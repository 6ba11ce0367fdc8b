package answer_test

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// Each status is stored, frees the key, or leaves the outcome unknown. A status that no
// standard defines counts as the first one of its class, and one above 599 as a 5xx.
func TestWhatAStatusSays(t *testing.T) {
	t.Parallel()
	frees := []int{401, 403, 408, 409, 423, 425, 429, 501, 503, 511}
	for status := -1; status <= 1100; status++ {
		stored := status >= 200 && status <= 498 && !slices.Contains(frees, status)
		uncertain := !stored && !slices.Contains(frees, status)
		if answer.Storable(status) != stored || answer.Unknown(status) != uncertain {
			t.Errorf("%d: stored %v, uncertain %v", status, answer.Storable(status), answer.Unknown(status))
		}
	}
}

package measure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// Quantiles of values from two processes differ by at most 1 % from those of all values. No run of the
// program would notice more.
func TestHistogramIsWithinOnePercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h, other, received := NewHistogram(), NewHistogram(), new(Histogram)
	values := make([]time.Duration, 20_000)
	for i := range values {
		values[i] = time.Duration(math.Exp(random.Float64() * 25)) // up to 72 s
		[]*Histogram{h, other}[i%2].Record(values[i])
	}
	sent, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sent, received); err != nil {
		t.Fatal(err)
	}
	h.Merge(received)
	slices.Sort(values)
	for _, part := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.9999, 1} {
		want := values[int(math.Ceil(part*float64(len(values))))-1]
		if got := h.Quantile(part); math.Abs(float64(got-want)) > 0.01*float64(want) {
			t.Errorf("Quantile(%v) = %v, want %v", part, got, want)
		}
	}
	if last := values[len(values)-1]; h.Longest != last || h.Quantile(1) > last || h.Count != int64(len(values)) {
		t.Errorf("longest is %v of %d, quantile 1 is %v, want %v", h.Longest, h.Count, h.Quantile(1), last)
	}
}

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

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"one":        {[]float64{7}, 7},
		"odd":        {[]float64{9, 1, 5}, 5},
		"even":       {[]float64{4, 1, 3, 2}, 2.5},
		"an outlier": {[]float64{1, 1000, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.values)
			if got := Median(c.values); got != c.want {
				t.Errorf("Median(%v) = %v, want %v", c.values, got, c.want)
			}
			if !slices.Equal(before, c.values) {
				t.Errorf("Median left %v, was %v", c.values, before)
			}
		})
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v, want NaN", got)
	}
}

// Quantiles differ by at most 1 % from those of all values.
func TestHistogramIsWithinOnePercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram()
	values := make([]time.Duration, 20_000)
	for i := range values {
		values[i] = time.Duration(math.Exp(random.Float64() * 25)) // up to 72 s
		h.Record(values[i])
	}
	slices.Sort(values)
	for _, part := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.9999, 1} {
		want := values[int(math.Ceil(part*float64(len(values))))-1]
		got := h.Quantile(part)
		if math.Abs(float64(got-want)) > 0.01*float64(want) {
			t.Errorf("Quantile(%v) = %v, want %v", part, got, want)
		}
	}
	if last := values[len(values)-1]; h.Longest != last || h.Quantile(1) > last {
		t.Errorf("longest is %v, quantile 1 is %v, want %v", h.Longest, h.Quantile(1), last)
	}
}

func TestHistogramsMerge(t *testing.T) {
	one, other, both := NewHistogram(), NewHistogram(), NewHistogram()
	for i := range 1000 {
		d := time.Duration(i*i) * time.Nanosecond
		both.Record(d)
		if i%3 == 0 {
			one.Record(d)
		} else {
			other.Record(d)
		}
	}
	sent, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	var received Histogram
	if err := json.Unmarshal(sent, &received); err != nil {
		t.Fatal(err)
	}
	one.Merge(&received)
	if one.Count != both.Count || one.Longest != both.Longest || !slices.Equal(one.Buckets, both.Buckets) {
		t.Errorf("merged: %+v, want %+v", one, both)
	}
}

// The bounds of buckets are contiguous: a shift may be off by one there.
func TestBucketsAreInOrder(t *testing.T) {
	for bit := range 62 {
		edge := time.Duration(1) << bit
		for _, d := range []time.Duration{edge - 1, edge, edge + 1} {
			middle := middleOf(bucketOf(d))
			if math.Abs(float64(middle-d)) > 0.01*float64(d) {
				t.Errorf("%d is in the bucket around %d", d, middle)
			}
			if d > 0 && bucketOf(d) < bucketOf(d-1) {
				t.Errorf("the bucket of %d is below that of %d", d, d-1)
			}
		}
	}
}

func TestUsedCountsAllocations(t *testing.T) {
	before, err := Used()
	if err != nil {
		t.Fatal(err)
	}
	kept := make([]*[64]byte, 1000)
	for i := range kept {
		kept[i] = new([64]byte)
	}
	after, err := Used()
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Since(before).Allocations; got < 1000 || got > 2000 || kept[999] == nil {
		t.Errorf("%d allocations for 1000 objects", got)
	}
}

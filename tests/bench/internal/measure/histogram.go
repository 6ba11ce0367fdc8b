// Package measure has what a process measures about itself: durations, and the CPU time and
// allocations that it uses.
package measure

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// A Histogram records durations with an error of at most 1 %. The longest is exact. It
// takes no memory for each value, so recording does not disturb the measurement,
// and it can be sent to another process as JSON. The zero value is empty. It is not safe
// for concurrent use.
//
// Values up to 127 ns have a bucket each. Above that each doubling has 64 buckets, as in G.
// Tene's HdrHistogram.
type Histogram struct {
	Count   int64
	Longest time.Duration
	Buckets []int64
}

const (
	subBits    = 6
	subBuckets = 1 << subBits
	maxBuckets = (64 - subBits) * subBuckets
)

// NewHistogram returns an empty histogram that never allocates again.
func NewHistogram() *Histogram {
	return &Histogram{Buckets: make([]int64, 0, maxBuckets)}
}

// Record adds one value. A negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.add(bucketOf(d), 1)
	h.Count++
	h.Longest = max(h.Longest, d)
}

// Merge adds all values of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, count := range other.Buckets {
		if count > 0 {
			h.add(i, count)
		}
	}
	h.Count += other.Count
	h.Longest = max(h.Longest, other.Longest)
}

// add puts values into a bucket.
func (h *Histogram) add(bucket int, count int64) {
	for bucket >= len(h.Buckets) {
		h.Buckets = append(h.Buckets, 0)
	}
	h.Buckets[bucket] += count
}

// Quantile returns the value at or below which this fraction of all values lies, by the
// nearest rank: Quantile(0.99) is the 99th percentile. It returns zero if there are no
// values.
func (h *Histogram) Quantile(part float64) time.Duration {
	rank := max(1, int64(part*float64(h.Count)+0.999999))
	for i, count := range h.Buckets {
		if rank -= count; rank <= 0 {
			return min(middleOf(i), h.Longest)
		}
	}
	return h.Longest
}

// bucketOf returns the bucket of a value.
func bucketOf(d time.Duration) int {
	v := uint64(d) //nolint:gosec // it is not negative
	if v < 2*subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return shift*subBuckets + int(v>>shift) //nolint:gosec // at most 127 after the shift
}

// middleOf returns the value in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 2*subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket/subBuckets - 1
	low := time.Duration(bucket-shift*subBuckets) << shift
	return low + (time.Duration(1)<<shift-1)/2
}

// Median returns the middle value, the mean of the two middle values if their
// number is even, and NaN if there are none. It leaves values as they are.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

package measure

import (
	"math"
	"slices"
)

// Median returns the middle value, the mean of the two middle values if their
// number is even, and NaN if there are none. It leaves values as they are.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

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
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

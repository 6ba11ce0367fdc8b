package measure

import "math"

// Jain returns the fairness of shares: 1 if all are equal, 1/n if one of n has
// everything, NaN if there is nothing to share. It is the index of R. Jain,
// D. Chiu and W. Hawe, "A Quantitative Measure of Fairness and Discrimination"
// (1984).
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, share := range shares {
		x := float64(share)
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}

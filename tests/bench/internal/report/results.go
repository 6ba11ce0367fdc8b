package report

import (
	"encoding/json"
	"io"
	"math"
	"slices"

	"github.com/reqlock/reqlock/tests/bench/internal/compare"
	"github.com/reqlock/reqlock/tests/bench/internal/growth"
	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/request"
)

// Results are all runs of one execution of the program.
type Results struct {
	Setting     Setting
	Comparisons []compare.Run
	Frameworks  []request.FrameworkRun
	Middlewares []request.MiddlewareRun
	Idempotent  []idempotent.RequestsRun
	Records     []idempotent.RecordsRun
	Keys        []growth.KeysRun
	Waiters     []growth.WaitersRun
}

// WriteJSON writes all raw runs.
func (r *Results) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Violations returns how often too many goroutines held a lock at a time, in all runs.
func (r *Results) Violations() (sum int64) {
	for _, run := range r.Comparisons {
		sum += run.Violations
	}
	return sum
}

// runs returns the runs of a lock in a suite.
func (r *Results) runs(suite string, name lock.Name) (runs []compare.Run) {
	for _, run := range r.Comparisons {
		if run.Suite == suite && run.Lock == name {
			runs = append(runs, run)
		}
	}
	return runs
}

// median returns the median of a figure over all repetitions, or NaN.
func (r *Results) median(suite string, name lock.Name, of figure) float64 {
	return medianOf(r.runs(suite, name), of)
}

// medianOf returns the median of a number over all runs, or NaN.
func medianOf[R any](runs []R, of func(R) float64) float64 {
	values := make([]float64, len(runs))
	for i, run := range runs {
		values[i] = of(run)
	}
	return measure.Median(values)
}

// highest and lowest return the best median of several locks, or NaN if none of them ran.
// Of the two settings of rueidislock they use the better one.
func (r *Results) highest(suite string, of figure, names ...lock.Name) float64 {
	return best(slices.Max, r, suite, of, names)
}

func (r *Results) lowest(suite string, of figure, names ...lock.Name) float64 {
	return best(slices.Min, r, suite, of, names)
}

func best(choose func([]float64) float64, r *Results, suite string, of figure, names []lock.Name) float64 {
	var values []float64
	for _, name := range names {
		if value := r.median(suite, name, of); !math.IsNaN(value) {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return math.NaN()
	}
	return choose(values)
}

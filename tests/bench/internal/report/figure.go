// Package report prints figures: as text with units, as tables, and as bar charts.
package report

import (
	"math"
	"strconv"
	"time"
)

// A Figure is one measured value.
type Figure struct {
	Name  string // the head of its column
	Value float64
	Text  func(float64) string // Number, Micros, Bytes or Percent
}

// Duration returns a Figure of a duration.
func Duration(name string, d time.Duration) Figure {
	return Figure{name, float64(d) / float64(time.Microsecond), Micros}
}

// missing stands for a value that was not measured.
const missing = "-"

// isKnown reports whether a value was measured.
func isKnown(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// Number returns a number with three significant digits and thousands separators.
func Number(f float64) string {
	switch size := math.Abs(f); {
	case !isKnown(f):
		return missing
	case f == 0:
		return "0"
	case size >= 999.5:
		return thousands(f)
	case size >= 99.95:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	default:
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
}

// Micros returns a number of microseconds with its unit.
func Micros(micros float64) string {
	switch size := math.Abs(micros); {
	case !isKnown(micros):
		return missing
	case size >= 1e6:
		return Number(micros/1e6) + " s"
	case size >= 1e3:
		return Number(micros/1e3) + " ms"
	case size < 1:
		return Number(micros*1e3) + " ns"
	default:
		return Number(micros) + " µs"
	}
}

// Bytes returns a number of bytes with its unit.
func Bytes(bytes float64) string {
	if !isKnown(bytes) {
		return missing
	}
	return Number(math.Round(bytes)) + " B"
}

// Percent returns a part of 1 in percent.
func Percent(part float64) string {
	if !isKnown(part) {
		return missing
	}
	return Number(100*part) + " %"
}

// thousands returns a whole number with commas.
func thousands(f float64) string {
	digits := strconv.FormatFloat(math.Abs(f), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if f < 0 {
		return "-" + digits
	}
	return digits
}

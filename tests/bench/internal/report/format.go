package report

import (
	"math"
	"strconv"
	"strings"
)

// missing stands for a number that was not measured.
const missing = "-"

// number returns a number with three significant digits and thousands separators.
func number(f float64) string {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return missing
	case f == 0:
		return "0"
	case size >= 1000:
		return thousands(f)
	case size >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	default:
		return strconv.FormatFloat(f, 'f', 4, 64)
	}
}

// thousands returns a whole number with commas.
func thousands(f float64) string {
	digits := strconv.FormatFloat(math.Abs(f), 'f', 0, 64)
	var b strings.Builder
	if f < 0 {
		b.WriteByte('-')
	}
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// duration returns a number of microseconds as text.
func duration(micros float64) string {
	switch {
	case math.IsNaN(micros) || math.IsInf(micros, 0):
		return missing
	case math.Abs(micros) >= 1e6:
		return number(micros/1e6) + " s"
	case math.Abs(micros) >= 1e3:
		return number(micros/1e3) + " ms"
	default:
		return number(micros) + " µs"
	}
}

// size returns a number of bytes as text.
func size(bytes float64) string {
	if math.IsNaN(bytes) {
		return missing
	}
	if math.Abs(bytes) >= 10*1024 {
		return number(bytes/1024) + " KiB"
	}
	return number(math.Round(bytes)) + " B"
}

// times returns a factor as text.
func times(factor float64) string {
	if math.IsNaN(factor) || math.IsInf(factor, 0) {
		return missing
	}
	return number(factor) + "x"
}

// percent returns a fraction of 1 as text.
func percent(part float64) string {
	if math.IsNaN(part) {
		return missing
	}
	return number(100*part) + " %"
}

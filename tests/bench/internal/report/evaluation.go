package report

import (
	"fmt"
	"math"
)

// A rule says how a measured value is compared with a target.
type rule int

const (
	timesMore  rule = iota // our value is at least this many times the other one
	timesLess              // the other value is at least this many times ours
	atLeast                // our value is at least this
	atMost                 // our value is at most this
	atMostMore             // our value is at most this much above the other one
)

// An evaluation is the result for one target.
type evaluation struct {
	value   float64 // the value that is compared with the target; NaN if it was not measured
	reached bool
	missed  float64 // by which fraction of the target
}

// evaluate compares two values with a target.
func (r rule) evaluate(ours, other, target float64) evaluation {
	v := evaluation{value: r.value(ours, other)}
	if math.IsNaN(v.value) {
		return v
	}
	if r == atMost || r == atMostMore {
		v.missed = (v.value - target) / target
	} else {
		v.missed = (target - v.value) / target
	}
	v.reached = v.missed <= 0
	return v
}

// value returns the value to compare with the target.
func (r rule) value(ours, other float64) float64 {
	switch r {
	case timesMore:
		return ours / other
	case timesLess:
		return other / ours
	case atMostMore:
		return ours - other
	case atLeast, atMost:
	}
	return ours
}

// goal returns a target as text.
func (r rule) goal(target float64) string {
	switch r {
	case timesMore:
		return fmt.Sprintf("≥ %gx", target)
	case timesLess:
		return fmt.Sprintf("≥ %gx lower", target)
	case atLeast:
		return fmt.Sprintf("≥ %g", target)
	case atMostMore:
		return fmt.Sprintf("≤ %g more", target)
	case atMost:
	}
	return fmt.Sprintf("≤ %g", target)
}

// measured returns the value as text.
func (r rule) measured(v evaluation) string {
	if math.IsNaN(v.value) {
		return missing
	}
	switch r {
	case timesMore, timesLess:
		return times(v.value)
	case atLeast, atMost, atMostMore:
	}
	return number(v.value)
}

func (v evaluation) String() string {
	switch {
	case math.IsNaN(v.value):
		return "not run"
	case v.reached:
		return "reached"
	default:
		return "missed by " + percent(v.missed)
	}
}

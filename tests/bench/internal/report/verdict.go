package report

import (
	"fmt"
	"math"
)

// A rule says how a measured value is held against a target.
type rule int

const (
	timesMore  rule = iota // ours is at least so many times the other's
	timesLess              // the other's is at least so many times ours
	atLeast                // ours is at least so much
	atMost                 // ours is at most so much
	atMostMore             // ours is at most so much above the other's
)

// A verdict is what became of one target.
type verdict struct {
	value   float64 // what the rule compares with the target; NaN if it was not measured
	reached bool
	missed  float64 // by which part of the target
}

// judge holds two values against a target.
func (r rule) judge(ours, other, target float64) verdict {
	v := verdict{value: r.value(ours, other)}
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

// value returns what is compared with the target.
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

// goal returns a target in words.
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

// measured returns the value in words.
func (r rule) measured(v verdict) string {
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

func (v verdict) String() string {
	switch {
	case math.IsNaN(v.value):
		return "not run"
	case v.reached:
		return "reached"
	default:
		return "missed by " + percent(v.missed)
	}
}

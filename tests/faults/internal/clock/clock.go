// Package clock is the clock of a history: CLOCK_MONOTONIC, which all processes
// of a host share, whatever becomes of the time of day.
package clock

import "time"

// A Clock turns the times of this process into those of Now. What it returns is
// early by no more than its width.
type Clock struct {
	base time.Time
	at   int64
}

// width is how long the two clocks may be read apart.
const width = 20 * time.Microsecond

// New returns a clock that turns times with a monotonic reading.
func New() Clock {
	for {
		at, base := Now(), time.Now()
		if Now()-at < width.Nanoseconds() {
			return Clock{base, at}
		}
	}
}

// Of returns a time with a monotonic reading as Now would have read it.
func (c Clock) Of(t time.Time) int64 { return c.at + t.Sub(c.base).Nanoseconds() }

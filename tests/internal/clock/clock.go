// Package clock is the clock of a history: CLOCK_MONOTONIC, which all processes of a host
// share and which changes of the wall clock do not affect.
package clock

import "time"

// A Clock converts times of this process to readings of Now. Its results are early by at
// most its width.
type Clock struct {
	base time.Time
	at   int64
}

// width bounds the time between the readings of the two clocks.
const width = 20 * time.Microsecond

// New returns a clock that converts times with a monotonic reading.
func New() Clock {
	for {
		at, base := Now(), time.Now()
		if Now()-at < width.Nanoseconds() {
			return Clock{base, at}
		}
	}
}

// Of returns what Now would have returned at t, which must have a monotonic reading.
func (c Clock) Of(t time.Time) int64 { return c.at + t.Sub(c.base).Nanoseconds() }

// At returns the time of this process at a reading of Now.
func (c Clock) At(reading int64) time.Time { return c.base.Add(time.Duration(reading - c.at)) }

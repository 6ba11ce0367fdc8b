package core

import (
	"fmt"
	"time"
)

// leastUnit is the shortest duration that an option accepts, except 0. A shorter one was
// mostly written without a unit.
const leastUnit = time.Millisecond

// checkUnit refuses a positive duration below leastUnit. The error names the option, and the
// shortest duration that it accepts.
func checkUnit(option string, d, least time.Duration) error {
	if d <= 0 || d >= leastUnit {
		return nil
	}
	return fmt.Errorf("reqlock: %s: %v is below %v: a number without a unit counts nanoseconds, so write a unit, as in 5*time.Second",
		option, d, max(least, leastUnit))
}

package validate

import "fmt"

// mostGoroutines is how many goroutines a client process may have: whatever it is sent
// must not make it grow without a bound.
const mostGoroutines = 500

// goroutineCounts finds the client processes that grew too much.
func goroutineCounts(s *summary) (found []Violation) {
	for _, size := range s.Sizes {
		if size.Goroutines > mostGoroutines {
			found = append(found, Violation{Check: checkGoroutines, Text: fmt.Sprintf(
				"process %d had %d goroutines, and at most %d are expected", size.Process, size.Goroutines, mostGoroutines)})
		}
	}
	return found
}

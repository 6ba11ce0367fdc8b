package validate

import "fmt"

// mostGoroutines is the largest allowed number of goroutines of a client process. No
// sequence of messages may make the number grow without a bound.
const mostGoroutines = 500

// goroutineCounts finds client processes with too many goroutines.
func goroutineCounts(s *summary) (found []Violation) {
	for _, size := range s.Sizes {
		if size.Goroutines > mostGoroutines {
			found = append(found, Violation{Check: checkGoroutines, Text: fmt.Sprintf(
				"process %d had %d goroutines, and at most %d are expected", size.Process, size.Goroutines, mostGoroutines)})
		}
	}
	return found
}

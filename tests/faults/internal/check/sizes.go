package check

import "fmt"

// mostGoroutines is how many goroutines a client process may have: whatever it is sent
// must not make it grow without a bound.
const mostGoroutines = 500

// sizes finds the client processes that grew too much.
func sizes(s *story) (found []Finding) {
	for _, size := range s.Sizes {
		if size.Goroutines > mostGoroutines {
			found = append(found, Finding{Check: "sizes", Text: fmt.Sprintf(
				"process %d had %d goroutines, and at most %d are expected", size.Process, size.Goroutines, mostGoroutines)})
		}
	}
	return found
}

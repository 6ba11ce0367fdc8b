package client

import (
	"runtime"
	"sync"
	"time"
)

// countPause is the pause between two counts of goroutines.
const countPause = 10 * time.Millisecond

// countGoroutines counts the goroutines of the process until stop is called. Stop calls
// tell with the largest number.
func countGoroutines(tell func(most int)) (stop func()) {
	end := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		ticker := time.NewTicker(countPause)
		defer ticker.Stop()
		most := 0
		for {
			most = max(most, runtime.NumGoroutine())
			select {
			case <-end:
				tell(most)
				return
			case <-ticker.C:
			}
		}
	})
	return sync.OnceFunc(func() {
		close(end)
		counting.Wait()
	})
}

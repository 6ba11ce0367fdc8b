package redisstore

import "time"

// Replicas are those who must have what was written before it counts. The zero
// value is none.
type Replicas struct {
	// Count is how many of them.
	Count int
	// Timeout is how long they have for it.
	Timeout time.Duration
}

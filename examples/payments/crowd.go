package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A crowd is clients that send requests at the same time.
type crowd struct {
	scene   *scene
	clients sync.WaitGroup

	mu    sync.Mutex
	tally tally
}

// A tally counts answers.
type tally struct {
	Done       int            // requests that were done
	Replayed   int            // those of them whose answer was marked as that of an earlier one
	Contents   map[string]int // the answers of those that were done, by what they say
	Refused    int            // requests refused because of a lock, and told when to try again
	Others     map[string]int // answers of all kinds but done, as in "409 + Retry-After"
	Unanswered int            // requests without an answer
	Err        error          // why one of them has none
}

// newCrowd returns a crowd without clients. The scene hears of each answer.
func newCrowd(scene *scene) *crowd {
	return &crowd{scene: scene, tally: tally{Contents: make(map[string]int), Others: make(map[string]int)}}
}

// send sends a request, so many times one after the other, as a client of its
// own.
func (c *crowd) send(times int, request func() (answer, error)) {
	c.clients.Go(func() {
		for range times {
			got, err := request()
			c.count(got, err)
			c.scene.answered()
		}
	})
}

func (c *crowd) count(got answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.tally.Unanswered++
		c.tally.Err = err
		return
	case got.Done:
		c.tally.Done++
		c.tally.Contents[got.Content]++
		if got.Replayed {
			c.tally.Replayed++
		}
		return
	}
	kind := got.Status
	if got.RetryAfter > 0 {
		kind += " + " + got.Retry
		if got.Busy {
			c.tally.Refused++
		}
	}
	c.tally.Others[kind]++
}

// wait returns the tally once all requests are over.
func (c *crowd) wait() tally {
	c.clients.Wait()
	return c.tally
}

// String returns the tally in words, as in "1 done, 8 × 409 + Retry-After".
func (t tally) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d done", t.Done)}, t.failures()...), ", ")
}

// failures returns in words what was not done, as in "8 × 409 + Retry-After".
func (t tally) failures() (words []string) {
	for _, kind := range slices.Sorted(maps.Keys(t.Others)) {
		words = append(words, fmt.Sprintf("%d × %s", t.Others[kind], kind))
	}
	if t.Unanswered > 0 {
		words = append(words, fmt.Sprintf("%d without answer (%v)", t.Unanswered, t.Err))
	}
	return words
}

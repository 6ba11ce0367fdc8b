package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A clientGroup is a group of clients that send requests at the same time.
type clientGroup struct {
	monitor *monitor
	clients sync.WaitGroup

	mu     sync.Mutex
	counts counts
}

// counts are numbers of answers.
type counts struct {
	Done       int            // requests that were executed
	Replayed   int            // of Done: answers that are marked as replays
	Contents   map[string]int // of Done: the number of answers for each content
	Refused    int            // requests refused because of a lock, with a time to retry
	Others     map[string]int // other answers by kind, such as "409 + Retry-After"
	Unanswered int            // requests without an answer
	Err        error          // the error of one request without an answer
}

// newClientGroup returns a group without clients. The monitor counts each answer.
func newClientGroup(monitor *monitor) *clientGroup {
	return &clientGroup{monitor: monitor, counts: counts{Contents: make(map[string]int), Others: make(map[string]int)}}
}

// send adds a client that sends a request a number of times, one after the other.
func (c *clientGroup) send(times int, request func() (answer, error)) {
	c.clients.Go(func() {
		for range times {
			got, err := request()
			c.count(got, err)
			c.monitor.answered()
		}
	})
}

func (c *clientGroup) count(got answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.counts.Unanswered++
		c.counts.Err = err
		return
	case got.Done:
		c.counts.Done++
		c.counts.Contents[got.Content]++
		if got.Replayed {
			c.counts.Replayed++
		}
		return
	}
	kind := got.Status
	if got.RetryAfter > 0 {
		kind += " + " + got.Retry
		if got.Busy {
			c.counts.Refused++
		}
	}
	c.counts.Others[kind]++
}

// wait waits for all clients, and returns the counts.
func (c *clientGroup) wait() counts {
	c.clients.Wait()
	return c.counts
}

// String returns a text such as "1 done, 8 × 409 + Retry-After".
func (t counts) String() string {
	return strings.Join(append([]string{fmt.Sprintf("%d done", t.Done)}, t.failures()...), ", ")
}

// failures returns texts for the other answers, such as "8 × 409 + Retry-After".
func (t counts) failures() (protocol []string) {
	for _, kind := range slices.Sorted(maps.Keys(t.Others)) {
		protocol = append(protocol, fmt.Sprintf("%d × %s", t.Others[kind], kind))
	}
	if t.Unanswered > 0 {
		protocol = append(protocol, fmt.Sprintf("%d without answer (%v)", t.Unanswered, t.Err))
	}
	return protocol
}

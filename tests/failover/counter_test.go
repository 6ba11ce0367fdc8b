package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A counter counts events by their names. It is safe for concurrent use, and its zero
// value is ready.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[name]++
}

// of returns how often the name was added.
func (c *counter) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[name]
}

// String lists the counts.
func (c *counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		all = append(all, fmt.Sprintf("%d %s", c.counts[name], name))
	}
	return strings.Join(all, ", ")
}

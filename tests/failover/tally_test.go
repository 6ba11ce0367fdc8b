package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A tally counts words. It is safe for concurrent use, and ready as it is.
type tally struct {
	mu    sync.Mutex
	words map[string]int
}

func (c *tally) add(word string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.words == nil {
		c.words = map[string]int{}
	}
	c.words[word]++
}

// of returns how often the word was added.
func (c *tally) of(word string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.words[word]
}

// String lists the words.
func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, word := range slices.Sorted(maps.Keys(c.words)) {
		all = append(all, fmt.Sprintf("%d %s", c.words[word], word))
	}
	return strings.Join(all, ", ")
}

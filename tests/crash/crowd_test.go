package crash

import (
	"sync"
	"testing"
)

// A crowd plays tests that mostly wait, more at a time than there are cores.
type crowd struct {
	places chan struct{}
	group  sync.WaitGroup
}

func newCrowd(places int) *crowd { return &crowd{places: make(chan struct{}, places)} }

// play plays a test of that name when there is a place.
func (c *crowd) play(t *testing.T, name string, f func(t *testing.T)) {
	c.places <- struct{}{}
	c.group.Go(func() {
		defer func() { <-c.places }()
		t.Run(name, f)
	})
}

func (c *crowd) wait() { c.group.Wait() }

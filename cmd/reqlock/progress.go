package main

import (
	"context"
	"fmt"
	"time"
)

// within calls a function with a context that ends after --timeout. On a terminal, it shows how long
// the call takes.
func (c *call) within(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if !c.hasEscapes(c.problems) {
		return do(ctx)
	}
	ended, hasEnded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(hasEnded)
		seconds, stop := c.ticks(time.Second)
		defer stop()
		for n := 1; ; n++ {
			select {
			case <-seconds:
				fmt.Fprintf(c.problems, "\rlooking through the keys of Redis, %ds ", n)
			case <-ended:
				if n > 1 {
					fmt.Fprint(c.problems, "\r\x1b[K")
				}
				return
			}
		}
	}()
	defer func() {
		close(ended)
		<-hasEnded
	}()
	return do(ctx)
}

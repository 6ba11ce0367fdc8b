package campaign

import (
	"context"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// A queue is a list of runs that no worker has taken yet. It is safe for concurrent use.
type queue struct {
	mu   sync.Mutex
	runs []Run
}

// next takes the first run. It returns false if the queue is empty.
func (q *queue) next() (r Run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.runs) == 0 {
		return Run{}, false
	}
	r, q.runs = q.runs[0], q.runs[1:]
	return r, true
}

// run executes all runs, several at a time, until none is left, ctx ends, or more returns
// false. The function more must be safe for concurrent use.
//
// A run mostly waits, so several share the machine. A run on several servers, or with more
// clients than usual, needs more of the machine: at most two of them run at a time. Runs on
// a quorum come first, one at a time: each call needs replies of most of five servers in time.
func (c *campaign) run(ctx context.Context, runs []Run, more func() bool) {
	light, heavy, alone := &queue{}, &queue{}, &queue{}
	for _, r := range runs {
		q := heavy
		switch {
		case r.On == fault.OnQuorum:
			q = alone
		case r.On == fault.OnServer && r.Fault.Clients == 0:
			q = light
		}
		q.runs = append(q.runs, r)
	}
	c.drain(ctx, alone, more)
	var workers sync.WaitGroup
	for i := range c.settings.Parallel {
		workers.Go(func() {
			switch i {
			case 0:
				c.drain(ctx, light, more)
				c.drain(ctx, heavy, more)
			case 1:
				c.drain(ctx, heavy, more)
				c.drain(ctx, light, more)
			default:
				c.drain(ctx, light, more)
			}
		})
	}
	workers.Wait()
}

// drain executes the runs of a queue one after the other.
func (c *campaign) drain(ctx context.Context, q *queue, more func() bool) {
	for ctx.Err() == nil && more() {
		r, ok := q.next()
		if !ok {
			return
		}
		c.record(c.runOne(ctx, r), ctx.Err() != nil)
	}
}

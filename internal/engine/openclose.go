package engine

import (
	"context"
	"time"
)

// awaitWork waits for all holders and commands, and then for the open commits, which it sends at
// once. Without a deadline of ctx it gives those commitTimeout, and then ends them.
func (e *Engine) awaitWork(ctx context.Context) error {
	if err := e.work.Wait(ctx); err != nil {
		return err
	}
	e.eachOpen((*openCommit).sendNow)
	wait := ctx
	if _, ends := ctx.Deadline(); !ends {
		limited, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()
		wait = limited
	}
	if err := e.open.work.Wait(wait); err != nil && ctx.Err() != nil {
		return err
	}
	e.endOpen(false)
	return e.open.sends.Wait(ctx)
}

// endOpen ends all open commits, and lets no more begin. The caller of Close observes that: the
// process may end soon. Unless atOnce, a commit that is being sent ends with the result. No answer
// is sealed any more.
func (e *Engine) endOpen(atOnce bool) {
	e.open.over.Store(true)
	var after callbacks
	e.eachOpen(func(c *openCommit) {
		if c.last = true; atOnce || !c.sending {
			c.end(c.fault, &after)
			return
		}
		c.endSeal()
	})
	e.observeAll(after.events)
}

// eachOpen calls f with each open commit. f may end it.
func (e *Engine) eachOpen(f func(*openCommit)) {
	e.eachShard(func(s *shard) {
		for _, q := range s.queues {
			for c := q.open; c != nil; {
				next := c.next
				f(c)
				c = next
			}
		}
	})
}

// OpenCommits returns how many open commits there are, how many bytes they have, and the age of
// the oldest one.
func (e *Engine) OpenCommits() (count int, bytes int64, oldest time.Duration) {
	if e.open.count.Load() == 0 {
		return 0, 0, 0
	}
	now := time.Now()
	e.eachOpen(func(c *openCommit) {
		count++
		bytes += c.size()
		oldest = max(oldest, now.Sub(c.begun))
	})
	return count, bytes, oldest
}

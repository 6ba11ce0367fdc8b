package resharding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A tally counts how calls ended that were not simply served.
type tally struct{ busy, timedOut, unavailable, left, lost, unreleased, doubtful atomic.Int64 }

// String says what was counted.
func (n *tally) String() string {
	return fmt.Sprintf("%d busy, %d waited in vain, %d unavailable, %d left, %d lost, %d not released at once, %d attempts in doubt",
		n.busy.Load(), n.timedOut.Load(), n.unavailable.Load(), n.left.Load(), n.lost.Load(), n.unreleased.Load(), n.doubtful.Load())
}

// pause is what those callers do between two calls who are refused at once.
const pause = 10 * time.Millisecond

// stay waits for as long as it takes: it is always served.
func (c *crew) stay(caller string, locks *core.Locker, key string, section time.Duration) {
	if err := c.turn(c.t.Context(), caller, locks, key, true, section); err != nil {
		c.unexpected(caller, key, err)
	}
}

// wait waits for as long as WithWait says.
func (c *crew) wait(caller string, locks *core.Locker, key string) {
	err := c.turn(c.t.Context(), caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrWaitTimeout):
		c.tally.timedOut.Add(1)
	default:
		c.refused(caller, key, err)
	}
}

// try does not wait.
func (c *crew) try(caller string, locks *core.Locker, key string) {
	err := c.turn(c.t.Context(), caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrBusy) && !errors.Is(err, core.ErrWaitTimeout):
		c.tally.busy.Add(1)
	default:
		c.refused(caller, key, err)
	}
	time.Sleep(pause)
}

// refused takes in the error of a call whose wait is bounded, which may be that
// Redis could not answer.
func (c *crew) refused(caller, key string, err error) {
	if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrClosed) || errors.Is(err, core.ErrBusy) {
		c.unexpected(caller, key, err)
		return
	}
	c.tally.unavailable.Add(1)
	time.Sleep(pause)
}

// leave goes away at any time.
func (c *crew) leave(caller string, locks *core.Locker, key string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), rand.N(60*time.Millisecond))
	defer cancel()
	err := c.turn(ctx, caller, locks, key, false, 0)
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded) &&
		(errors.Is(err, core.ErrWaitTimeout) != errors.Is(err, core.ErrUnavailable)):
		c.tally.left.Add(1)
	default:
		c.unexpected(caller, key, err)
	}
}

// requestTime is for how long all processes send the same request.
const requestTime = 100 * time.Millisecond

// pay sends an idempotent request that others send too.
func (c *crew) pay(process int, locks *core.Locker, tag string) {
	key := fmt.Sprintf("%spay%d", tag, c.now()/requestTime)
	caller, r := fmt.Sprintf("payer %d", process), c.request(key)
	asked := c.now()
	attempt, err := locks.Begin(c.t.Context(), key, []byte("payload"))
	switch {
	case err == nil:
	case errors.Is(err, core.ErrInterrupted):
		r.refused()
		time.Sleep(pause)
		return
	default:
		c.unexpected(caller, key, err)
		return
	}
	if answer, done := attempt.Replay(); done {
		r.replayed(string(answer))
		time.Sleep(pause)
		return
	}
	answer := fmt.Sprintf("done by %s at %v", caller, c.now())
	r.run(answer)
	r.tell("%s asked at %v, began number %d at %v", caller, asked, attempt.Number(), c.now())
	lost := attempt.Lease().Context().Err() != nil
	err = attempt.Commit(c.t.Context(), []byte(answer))
	r.tell("%s committed at %v: %v", caller, c.now(), err)
	if err != nil || lost {
		r.doubt()
		c.tally.doubtful.Add(1)
		if err != nil && !errors.Is(err, core.ErrUnavailable) {
			c.unexpected("commit by "+caller, key, err)
		}
	}
}

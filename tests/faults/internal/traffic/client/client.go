package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/resource"
)

// A client makes one call after the other.
type client struct {
	*process
	number int // unique in the run
	random *rand.Rand
	user   *resource.User
}

// A client pauses between its turns: for longer if Redis is unavailable, since its calls
// may return at once.
const (
	pause     = 5 * time.Millisecond
	longPause = 40 * time.Millisecond
)

// takeTurns takes turns until the process ends.
func (c *client) takeTurns() {
	for !c.isEnding() {
		outcome := c.turn()
		if outcome == history.Unavailable {
			time.Sleep(c.upTo(longPause))
		}
		time.Sleep(c.upTo(pause))
	}
}

func (c *client) isEnding() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// turn takes one turn, and returns the outcome of its first call.
func (c *client) turn() history.Outcome {
	switch {
	case c.chance(c.Attempts):
		return c.payOnce()
	case c.chance(c.SharedTurns):
		return c.takeShared()
	case c.Careless && c.chance(25):
		return c.holdUnrenewed(true)
	case c.MinHold > 0 && c.chance(30):
		return c.releaseEarly()
	case c.chance(2):
		return c.holdUnrenewed(false)
	case c.chance(10):
		return c.lockTwo()
	case c.chance(15):
		return c.runLocked()
	case c.chance(20):
		return c.try()
	default:
		return c.wait()
	}
}

// chance returns true in that many of a hundred cases.
func (c *client) chance(percent int) bool { return c.random.IntN(100) < percent }

// upTo returns a random time below most.
func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(most)))
}

// key returns a random exclusive lock.
func (c *client) key() string {
	keys := exclusiveKeys()
	return keys[c.random.IntN(len(keys))]
}

// report reports a call of this client.
func (c *client) report(op history.Op) *call {
	op.Client = c.number
	return c.reporter.begin(op)
}

// must ends the process if the campaign has ended.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// rest waits for a time, or until the context ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// An injectedPanic is the panic of a holder that belongs to the workload.
type injectedPanic struct{}

// recoverInjected runs f and recovers an injected panic. Any other panic continues.
func recoverInjected(f func()) {
	defer func() {
		if r := recover(); r != nil && r != any(injectedPanic{}) {
			panic(r)
		}
	}()
	f()
}

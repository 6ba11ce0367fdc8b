package client

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// Some attempts ask for a payment again for which others have asked a while ago.
const (
	repeated = 25 // of a hundred
	farBack  = 20 // payments
	// payWait is how long a client waits at most while another one pays.
	payWait = 200 * time.Millisecond
)

// payment returns the key of a payment, and what is to become of it if an attempt at
// it dies: every other one may be run again.
func (c *client) payment() (key string, policy history.Policy) {
	n, err := c.user.Payment()
	must(err)
	if c.chance(repeated) {
		n = max(0, n-c.random.IntN(farBack))
	}
	policy = history.Reject
	if n%2 == 1 {
		policy = history.Rerun
	}
	return fmt.Sprintf("pay-%d", n), policy
}

// onDeath returns the option's value for a policy.
func onDeath(policy history.Policy) core.Policy {
	if policy == history.Rerun {
		return core.Rerun
	}
	return core.Reject
}

// pay begins an attempt at a payment, and makes it if it is to run. Where it was made
// before, another one is now and then asked for by the same key, by mistake.
func (c *client) pay() history.Outcome {
	key, policy := c.payment()
	h, attempt, heard := c.ask(key, policy, false)
	if h != nil {
		walkingOut(func() { c.charge(h, attempt) })
	}
	if heard == history.Replayed && c.chance(10) {
		c.mistake(key, policy)
	}
	return heard
}

// mistake asks for another payment by the key of one that was made. Only where that
// was lost meanwhile it is to run, and is aborted.
func (c *client) mistake(key string, policy history.Policy) {
	if h, attempt, _ := c.ask(key, policy, true); h != nil {
		h.end(c.leaving(), h.leave(history.Abort, ""), attempt.Abort)
	}
}

// ask begins an attempt. The hold is nil if it is not to run.
func (c *client) ask(key string, policy history.Policy, other bool) (*hold, *core.Attempt, history.Outcome) {
	ctx := context.Background()
	wait := c.upTo(payWait)
	locks := c.locks.With(core.WithInterrupted(onDeath(policy)), core.WithWait(wait))
	payload := key
	if other {
		payload = "not " + key
	}
	asked := c.begin(history.Op{Kind: history.Begin, Key: key, Wait: wait.Nanoseconds(), Policy: policy, Other: other})
	attempt, err := locks.Begin(ctx, key, []byte(payload))
	if err != nil {
		asked.end(clock.Now(), outcomeOf(ctx, err), err)
		return nil, nil, asked.op.Outcome
	}
	if record, done := attempt.Replay(); done {
		at := clock.Now()
		asked.op.Record = string(record)
		asked.end(at, history.Replayed, nil)
		return nil, nil, history.Replayed
	}
	asked.op.Number = attempt.Number()
	return c.granted(asked, attempt.Lease()), attempt, history.Granted
}

// charge runs an attempt. Whoever leaves it without an end, by a panic or because
// its lease has ended, has interrupted it.
func (c *client) charge(h *hold, attempt *core.Attempt) {
	ended := false
	defer func() {
		if !ended {
			h.end(context.Background(), h.leave(history.Release, ""), attempt.Interrupt)
		}
	}()
	c.work(h.lease.Context())
	if c.chance(8) {
		ended = true
		h.end(c.leaving(), h.leave(history.Abort, ""), attempt.Abort)
		return
	}
	c.mayWalkOut()
	if _, valid := h.valid(); !valid {
		return
	}
	must(c.user.Charge(h.key, attempt.Number(), h.name))
	c.settle(h.lease.Context())
	c.mayWalkOut()
	ended = true
	if c.chance(5) {
		h.end(c.leaving(), h.leave(history.Seal, ""), attempt.Seal)
		return
	}
	record := fmt.Sprintf("%s paid by %s", h.key, h.name)
	h.end(c.leaving(), h.leave(history.Commit, record), func(ctx context.Context) error { return attempt.Commit(ctx, []byte(record)) })
}

// settle takes its time over what was charged, now and then too long: it is to be
// committed all the same, also when the lease is lost, and maybe another's.
func (c *client) settle(ctx context.Context) {
	if c.chance(4) {
		rest(ctx, c.upTo(3*c.TTL))
	}
}

// mayWalkOut panics now and then.
func (c *client) mayWalkOut() {
	if c.chance(4) {
		panic(walkout{})
	}
}

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
	repeatedPercent = 25 // of a hundred
	maxLookback     = 20 // payments
	// payWait is how long a client waits at most while another one pays.
	payWait = 200 * time.Millisecond
)

// payment returns the key of a payment, and what is to become of it if an attempt at
// it dies: every other one may be run again.
func (c *client) payment() (key string, policy history.Policy) {
	n, err := c.user.Payment()
	must(err)
	if c.chance(repeatedPercent) {
		n = max(0, n-c.random.IntN(maxLookback))
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

// payOnce begins an attempt at a payment, and makes it if it is to run. Where it was made
// before, another one is now and then asked for by the same key, by mistake.
func (c *client) payOnce() history.Outcome {
	key, policy := c.payment()
	h, attempt, outcome := c.beginAttempt(key, policy, false)
	if h != nil {
		recoverInjected(func() { c.runAttempt(h, attempt) })
	}
	if outcome == history.Replayed && c.chance(10) {
		c.reuseKey(key, policy)
	}
	return outcome
}

// reuseKey asks for another payment by the key of one that was made. Only where that
// was lost meanwhile it is to run, and is aborted.
func (c *client) reuseKey(key string, policy history.Policy) {
	if h, attempt, _ := c.beginAttempt(key, policy, true); h != nil {
		h.end(c.endContext(), h.reportEndCall(history.Abort, ""), attempt.Abort)
	}
}

// beginAttempt begins an attempt. The hold is nil if it is not to run.
func (c *client) beginAttempt(key string, policy history.Policy, other bool) (*hold, *core.Attempt, history.Outcome) {
	ctx := context.Background()
	wait := c.upTo(payWait)
	locks := c.locks.With(core.WithInterrupted(onDeath(policy)), core.WithWait(wait))
	payload := key
	if other {
		payload = "not " + key
	}
	call := c.report(history.Op{Kind: history.Begin, Key: key, Wait: wait.Nanoseconds(), Policy: policy, Other: other})
	attempt, err := locks.Begin(ctx, key, []byte(payload))
	if err != nil {
		call.end(clock.Now(), outcomeOf(ctx, err), err)
		return nil, nil, call.op.Outcome
	}
	if record, done := attempt.Replay(); done {
		at := clock.Now()
		call.op.Record = string(record)
		call.end(at, history.Replayed, nil)
		return nil, nil, history.Replayed
	}
	call.op.Number = attempt.Number()
	return c.granted(call, attempt.Lease()), attempt, history.Granted
}

// runAttempt runs an attempt. Whoever leaves it without an end, by a panic or because
// its lease has ended, has interrupted it.
func (c *client) runAttempt(h *hold, attempt *core.Attempt) {
	ended := false
	defer func() {
		if !ended {
			h.end(context.Background(), h.reportEndCall(history.Release, ""), attempt.Interrupt)
		}
	}()
	c.work(h.lease.Context())
	if c.chance(8) {
		ended = true
		h.end(c.endContext(), h.reportEndCall(history.Abort, ""), attempt.Abort)
		return
	}
	c.maybePanic()
	if _, valid := h.isValid(); !valid {
		return
	}
	must(c.user.Charge(h.key, attempt.Number(), h.name))
	c.delayEnd(h.lease.Context())
	c.maybePanic()
	ended = true
	if c.chance(5) {
		h.end(c.endContext(), h.reportEndCall(history.Seal, ""), attempt.Seal)
		return
	}
	record := fmt.Sprintf("%s paid by %s", h.key, h.name)
	h.end(c.endContext(), h.reportEndCall(history.Commit, record), func(ctx context.Context) error { return attempt.Commit(ctx, []byte(record)) })
}

// delayEnd takes its time over what was charged, now and then too long: it is to be
// committed all the same, also when the lease is lost, and maybe another's.
func (c *client) delayEnd(ctx context.Context) {
	if c.chance(4) {
		rest(ctx, c.upTo(3*c.TTL))
	}
}

// maybePanic panics now and then.
func (c *client) maybePanic() {
	if c.chance(4) {
		panic(injectedPanic{})
	}
}

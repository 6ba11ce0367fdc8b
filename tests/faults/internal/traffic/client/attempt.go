package client

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// Some attempts repeat an earlier payment.
const (
	repeatedPercent = 25 // of a hundred
	maxLookback     = 20 // payments
	// payWait is the longest wait for the attempt of another client.
	payWait = 200 * time.Millisecond
	// mostAgain is how often a client asks again after the commit of its payment has failed.
	mostAgain = 20
)

// payment returns the key of a payment, and the policy for attempts that die: every other
// payment may run again.
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

// payOnce begins an attempt at a payment, and runs it if it must run. If the payment was
// made before, the client sometimes uses its key for another payment, by mistake.
func (c *client) payOnce() history.Outcome {
	key, policy := c.payment()
	h, attempt, outcome := c.beginAttempt(key, policy, false)
	if h != nil {
		recoverInjected(func() { c.runAttempt(h, attempt, policy) })
	}
	if outcome == history.Replayed && c.chance(10) {
		c.reuseKey(key, policy)
	}
	return outcome
}

// reuseKey begins an attempt at another payment with a key that was used before. The
// attempt runs only if the record was lost, and then it is aborted.
func (c *client) reuseKey(key string, policy history.Policy) {
	if h, attempt, _ := c.beginAttempt(key, policy, true); h != nil {
		h.end(c.endContext(), h.reportEndCall(history.Abort, ""), attempt.Abort)
	}
}

// beginAttempt begins an attempt. The hold is nil if the attempt must not run.
func (c *client) beginAttempt(key string, policy history.Policy, other bool) (*hold, *core.Attempt, history.Outcome) {
	ctx := context.Background()
	wait := max(c.upTo(payWait), time.Millisecond) // the shortest that WithWait allows
	locks := c.locks.With(core.WithRerunUnknown(policy == history.Rerun), core.WithWait(wait))
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

// runAttempt runs an attempt. It interrupts the attempt if it panics or if the lease has
// ended.
func (c *client) runAttempt(h *hold, attempt *core.Attempt, policy history.Policy) {
	ended := false
	defer func() {
		if !ended {
			h.end(context.Background(), h.reportEndCall(history.Release, ""), func(ctx context.Context) error { return attempt.Unknown(ctx, nil) })
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
	if h.lease.Context().Err() != nil && c.chance(50) {
		ended = true
		c.retryAndEnd(h, attempt, policy)
		return
	}
	c.maybePanic()
	ended = true
	c.endAttempt(h, attempt, policy)
}

// endAttempt commits an attempt, or ends it without an answer. If that fails, its client asks again.
func (c *client) endAttempt(h *hold, attempt *core.Attempt, policy history.Policy) {
	kind, record, end := history.Seal, "", attempt.Done
	if !c.chance(5) {
		kind, record = history.Commit, fmt.Sprintf("%s paid by %s", h.key, h.name)
		end = func(ctx context.Context) error { return attempt.Commit(ctx, []byte(record)) }
	}
	call := h.reportEndCall(kind, record)
	h.end(c.endContext(), call, end)
	if call.op.Outcome == history.Unavailable {
		c.askAgain(h.key, policy)
	}
}

// askAgain begins attempts at a payment until there is an outcome, or as often as a patient client
// does.
func (c *client) askAgain(key string, policy history.Policy) {
	for range mostAgain {
		if c.chance(10) {
			c.reuseKey(key, policy)
		}
		h, attempt, outcome := c.beginAttempt(key, policy, false)
		switch {
		case h != nil:
			c.runAttempt(h, attempt, policy)
			return
		case outcome != history.Unavailable, c.isEnding():
			return
		}
		rest(context.Background(), c.upTo(payWait))
	}
}

// retryAndEnd begins another attempt at the payment before it ends this one, which has lost its
// lease, and then runs the other one. If the other one may run, this one must not be committed.
func (c *client) retryAndEnd(h *hold, attempt *core.Attempt, policy history.Policy) {
	otherHold, other, _ := c.beginAttempt(h.key, policy, false)
	c.endAttempt(h, attempt, policy)
	if otherHold != nil {
		c.runAttempt(otherHold, other, policy)
	}
}

// delayEnd sometimes waits before the attempt ends. The attempt is committed even if its
// lease is lost meanwhile.
func (c *client) delayEnd(ctx context.Context) {
	if c.chance(6) {
		rest(ctx, c.upTo(3*c.TTL))
	}
}

func (c *client) maybePanic() {
	if c.chance(4) {
		panic(injectedPanic{})
	}
}

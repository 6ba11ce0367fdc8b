package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// begin begins one of the latest three requests.
func (c *simulatedClient) begin() {
	n := len(c.Ops)/40 + c.IntN(3)
	policy := reject
	if n%2 == 1 {
		policy = rerun
	}
	h := &simulatedLease{key: lock{fmt.Sprint("pay-", n), true}, lease: c.name("a"), endReported: never}
	back := c.call(history.Op{Kind: history.Begin, Key: h.key.key, Policy: policy})
	c.awaitTurn(h, policy, back)
}

// awaitTurn requests to run, until the server answers.
func (c *simulatedClient) awaitTurn(h *simulatedLease, policy history.Policy, back func(history.Outcome, func(*history.Op))) {
	sent := c.now
	c.send(func() func() {
		l := c.lock(h.key)
		c.admit(l)
		held := len(l.out) > 0
		switch {
		case l.done && c.flaw != rerunsDone:
			answer := l.answer
			return func() {
				back(history.Replayed, func(op *history.Op) { op.Record = answer })
				c.idle()
			}
		case held:
			return func() { c.later(c.upTo(20), func() { c.awaitTurn(h, policy, back) }) }
		case l.record != "" && policy == reject:
			return func() { back(history.Interrupted, nil); c.idle() }
		}
		c.grant(l, h.lease, 0)
		l.record, l.number = h.lease, l.number+1
		if c.flaw == countsFirst {
			l.number = 1
		}
		h.fence, h.valid = l.fence, sent+ttl*ms
		number := l.number
		return func() { c.granted(h, back, number, policy) }
	}, func() { back(history.Unavailable, nil); c.idle() })
}

// answer charges and commits an attempt, or aborts it.
func (c *simulatedClient) answer(h *simulatedLease, number int, reliedUntil int64) {
	end := history.Op{Kind: history.Commit, Key: h.key.key, Lease: h.lease, ValidUntil: h.valid, ReliedUntil: reliedUntil, Record: "by " + h.lease}
	if c.chance(15) {
		end.Kind, end.Record = history.Abort, ""
	} else {
		c.Effects = append(c.Effects, history.Effect{
			At: c.now, Process: c.process, Client: c.client, Key: h.key.key, Number: number, Lease: h.lease,
		})
	}
	back := c.call(end)
	c.send(func() func() {
		l := c.lock(h.key)
		outcome := history.Done
		switch {
		case l.record != h.lease && (end.Kind == history.Commit):
			outcome = history.Lost
		case l.record != h.lease:
		case end.Kind == history.Commit:
			l.done, l.answer = true, end.Record
		default:
			l.number--
			l.record = ""
			if l.number > 0 {
				l.record = "one who died"
			}
		}
		c.free(l, h.lease)
		return func() { back(outcome, nil); c.idle() }
	}, func() { back(history.Unavailable, nil); c.idle() })
}

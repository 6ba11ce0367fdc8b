package failover

import (
	"fmt"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A phase is where an idempotent request is when the master fails. Its handler has taken
// effect in all phases.
type phase string

const (
	endsAtFailure        phase = "the handler ends when the master has failed"
	endsDuringOutage     phase = "the handler ends while there is no master"
	endsAtPromotion      phase = "the handler ends when a replica was promoted"
	endsAfterReplacement phase = "the handler ends when there is another master"
	commitHeld           phase = "the commit is sent, and Redis has not received it"
	replyDropped         phase = "the commit is done, and its reply is lost"
	isAnswered           phase = "the commit is done, and the client has the answer"
)

// commits is the part of idempotent requests that end when the master fails.
type commits struct {
	*scenario
	requests []*commitRequest
	others   []*service // services without a part in these requests
}

func (c *commits) start() {
	for n := range 2 {
		c.others = append(c.others, c.newService(n, requestWait))
	}
	for i, at := range []phase{
		endsAtFailure, endsDuringOutage, endsAtPromotion, endsAfterReplacement, commitHeld, replyDropped, isAnswered,
	} {
		for _, overGRPC := range []bool{false, true} {
			r := &commitRequest{
				scenario: c.scenario, phase: at, overGRPC: overGRPC,
				mayEnd: make(chan struct{}), answered: make(chan struct{}),
			}
			r.serve(i)
			r.start(fmt.Sprintf("%s-%d-%v", c.name, i, overGRPC))
			c.requests = append(c.requests, r)
		}
	}
}

func (c *commits) prepare() {
	for _, r := range c.requests {
		r.prepare()
	}
}

func (c *commits) replaced() {
	for _, r := range c.requests {
		for _, release := range r.releases {
			release() // the held commit arrives late, if its connection still exists
		}
		if r.phase == endsAfterReplacement {
			r.endHandler()
		}
	}
}

// retries is how often the client sends the request again.
const retries = 4

func (c *commits) finish() {
	var results counter
	for _, r := range c.requests {
		suite.AwaitClosed(c.t, "the client has an answer", r.answered)
		for i := range retries {
			r.retries = append(r.retries, r.retry(i, c.others[i%2]))
		}
		results.add(r.check())
	}
	c.figures.note("%s", &results)
}

package failover

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
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
	c.note("%s", &results)
}

// A commitRequest is an idempotent request whose commit meets the failure of the master.
type commitRequest struct {
	*scenario
	phase       phase
	overGRPC    bool
	service     *service
	proxy       *redistest.Proxy // in front of the master
	request     request
	mayEnd      chan struct{} // closed to end the handler
	commitBegan int64         // at the earliest; set before mayEnd is closed
	answered    chan struct{} // closed when first is set
	first       answer
	retries     []answer
	releases    []func() // of held commits
}

// serve starts the process, behind proxies if the phase needs them.
func (r *commitRequest) serve(number int) {
	var routes map[string]string
	if r.phase == commitHeld || r.phase == replyDropped {
		routes = map[string]string{}
		for _, server := range r.servers() {
			proxy := redistest.NewProxy(r.t, server.Addr())
			routes[server.Addr()] = proxy.Addr()
			if server == r.master {
				r.proxy = proxy
			}
		}
	}
	r.service = newService(r.t, newProcess(r.t, r.client(r.t, number, routes), core.WithTTL(2*shortTTL)), r.ledger, requestWait)
}

func (r *commitRequest) newRequest(name string) request {
	for i := 0; ; i++ {
		q := request{isIdempotent: true, key: fmt.Sprintf("%s-%d", name, i)}
		if r.isAt(r.master, q.lockKey(r.overGRPC)) {
			return q
		}
	}
}

// start sends the request, and returns when its handler has taken effect. On a busy
// machine requests may be refused before that: they are sent again.
func (r *commitRequest) start(name string) {
	// After a first request Redis has the scripts, and each script is one command.
	warmUps := 0
	suite.Eventually(r.t, "a request runs", func() bool {
		warmUps++
		return r.send(r.ctx, "warm-up", r.service, r.newRequest(fmt.Sprintf("%s-warm-up-%d", name, warmUps))).isOK()
	})
	r.request = r.newRequest(name)
	entered := make(chan struct{})
	var once sync.Once
	r.ledger.hook(r.request.key, func() {
		once.Do(func() { close(entered) })
		select {
		case <-r.mayEnd:
		case <-r.ctx.Done():
		}
	})
	r.group.Go(func() {
		defer close(r.answered)
		for i := 0; !suite.IsClosed(entered) && r.ctx.Err() == nil; i++ {
			r.first = r.send(r.ctx, fmt.Sprintf("first %d", i), r.service, r.request)
		}
	})
	suite.AwaitClosed(r.t, "the handler has started", entered)
}

// send sends a request, and fails the test if the answer is wrong.
func (r *commitRequest) send(ctx context.Context, id string, s *service, q request) answer {
	q.id = q.key + " " + id
	a := s.send(ctx, r.overGRPC, q)
	if violation := a.violation(q, r.ledger.of(q.key)); violation != "" && !r.isAborted() {
		r.t.Errorf("%s: %s: %s", r.phase, q.id, violation)
	}
	return a
}

// isCommit matches the commit of this request: finish.lua with an answer.
func (r *commitRequest) isCommit(command []string) bool {
	return strings.HasPrefix(command[0], "EVAL") && len(command) > 13 && command[2] == "3" &&
		command[3] == prefix+r.request.lockKey(r.overGRPC) && command[11] == "D"
}

// maxSends is more than a commit is sent before the master fails.
const maxSends = 6

func (r *commitRequest) prepare() {
	var happened <-chan struct{}
	switch r.phase {
	case commitHeld:
		for i := range maxSends {
			release, seen := r.proxy.HoldCommand(r.isCommit)
			r.releases = append(r.releases, release)
			if i == 0 {
				happened = seen
			}
		}
	case replyDropped:
		for i := range maxSends {
			if dropped := r.proxy.DropReply(r.isCommit, redistest.KeepConn); i == 0 {
				happened = dropped
			}
		}
	case isAnswered:
		happened = r.answered
	case endsAtFailure:
		r.endHandlerAfter(r.failed, 0)
		return
	case endsDuringOutage:
		r.endHandlerAfter(r.failed, r.midOutage())
		return
	case endsAtPromotion:
		r.endHandlerAfter(r.promoted, 0)
		return
	case endsAfterReplacement:
		return
	}
	r.endHandler()
	suite.AwaitClosed(r.t, string(r.phase), happened)
}

func (r *commitRequest) endHandler() {
	r.commitBegan = clock.Now()
	close(r.mayEnd)
}

func (r *commitRequest) endHandlerAfter(event <-chan struct{}, pause time.Duration) {
	r.group.Go(func() {
		defer r.endHandler()
		select {
		case <-event:
		case <-r.ctx.Done():
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
		}
	})
}

func (r *commitRequest) retry(i int, s *service) (a answer) {
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		a = r.send(ctx, fmt.Sprintf("retry %d", i), s, r.request)
		if a.isOK() || a.code == outcomeUnknown {
			return a
		}
	}
	r.t.Errorf("%s: no final answer: %v", r.phase, a)
	return a
}

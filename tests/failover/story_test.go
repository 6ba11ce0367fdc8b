package failover

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A story is one of these requests, and what became of it.
type story struct {
	*scene
	point    point
	overGRPC bool
	service  *service
	proxy    *redistest.Proxy // to the master
	q        question
	mayEnd   chan struct{}
	began    time.Time     // its commit, at the earliest; set before mayEnd is closed
	answered chan struct{} // closed when first is set
	first    answer
	retries  []answer
	release  []func()
}

// serve starts the process, behind proxies where the point needs them.
func (st *story) serve(number int) {
	var via map[string]string
	if st.point == sent || st.point == unheard {
		via = map[string]string{}
		for _, server := range st.servers() {
			proxy := redistest.NewProxy(st.t, server.Addr())
			via[server.Addr()] = proxy.Addr()
			if server == st.master {
				st.proxy = proxy
			}
		}
	}
	st.service = newService(st.t, newProcess(st.t, st.client(st.t, number, via), core.WithTTL(2*shortTTL)), st.ledger, streamWait)
}

// questionAt returns an idempotent request whose record is at the master.
func (st *story) questionAt(name string) question {
	for i := 0; ; i++ {
		q := question{once: true, key: fmt.Sprintf("%s-%d", name, i)}
		if st.isAt(st.master, q.endpoint(st.overGRPC)) {
			return q
		}
	}
}

// start sends the request, and returns when its handler has had its effect. A busy
// machine may refuse requests before that: they are sent again.
func (st *story) start(name string) {
	// The scripts are known to Redis from then on: each is one command.
	warmed := 0
	await(st.t, "a request runs", func() bool {
		warmed++
		return st.ask(st.ctx, "warm", st.service, st.questionAt(fmt.Sprintf("%s-warm-%d", name, warmed))).fine()
	})
	st.q = st.questionAt(name)
	entered := make(chan struct{})
	var once sync.Once
	st.ledger.hook(st.q.key, func() {
		once.Do(func() { close(entered) })
		select {
		case <-st.mayEnd:
		case <-st.ctx.Done():
		}
	})
	st.group.Go(func() {
		defer close(st.answered)
		for i := 0; !isClosed(entered) && st.ctx.Err() == nil; i++ {
			st.first = st.ask(st.ctx, fmt.Sprintf("first %d", i), st.service, st.q)
		}
	})
	awaitClosed(st.t, "the handler has come in", entered)
}

// ask asks, and fails the test if the answer is one that must not be.
func (st *story) ask(ctx context.Context, request string, s *service, q question) answer {
	q.request = q.key + " " + request
	a := s.ask(ctx, st.overGRPC, q)
	if fault := a.fault(q, st.ledger.of(q.key)); fault != "" && !st.isBrokenOff() {
		st.t.Errorf("%s: %s: %s", st.point, q.request, fault)
	}
	return a
}

// isCommit picks finish.lua with an answer, for this request.
func (st *story) isCommit(command []string) bool {
	return strings.HasPrefix(command[0], "EVAL") && len(command) > 13 && command[2] == "3" &&
		command[3] == prefix+st.q.endpoint(st.overGRPC) && command[11] == "D"
}

// enough is how many sends of a commit are caught until the master fails.
const enough = 6

func (st *story) poise() {
	var caught <-chan struct{}
	switch st.point {
	case sent:
		for i := range enough {
			release, seen := st.proxy.HoldCommand(st.isCommit)
			st.release = append(st.release, release)
			if i == 0 {
				caught = seen
			}
		}
	case unheard:
		for i := range enough {
			if dropped := st.proxy.DropReply(st.isCommit, redistest.KeepConn); i == 0 {
				caught = dropped
			}
		}
	case heard:
		caught = st.answered
	case running:
		st.endAfter(st.struck, 0)
		return
	case amid:
		st.endAfter(st.struck, st.midst())
		return
	case soon:
		st.endAfter(st.promotion.done, 0)
		return
	case late:
		return
	}
	st.finish()
	awaitClosed(st.t, string(st.point), caught)
}

// finish ends the handler.
func (st *story) finish() {
	st.began = time.Now()
	close(st.mayEnd)
}

// endAfter ends the handler so long after the channel is closed.
func (st *story) endAfter(happened <-chan struct{}, pause time.Duration) {
	st.group.Go(func() {
		defer st.finish()
		select {
		case <-happened:
		case <-st.ctx.Done():
		}
		select {
		case <-time.After(pause):
		case <-st.ctx.Done():
		}
	})
}

// retry sends the request again, until what comes back is about it.
func (st *story) retry(i int, s *service) (a answer) {
	ctx, cancel := context.WithTimeout(st.ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		a = st.ask(ctx, fmt.Sprintf("retry %d", i), s, st.q)
		if a.fine() || a.code == "outcome_unknown" {
			return a
		}
	}
	st.t.Errorf("%s: no end: %v", st.point, a)
	return a
}

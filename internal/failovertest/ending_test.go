package failovertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

// A point is where an idempotent request is when the master fails. Its handler has
// had its effect in all of them.
type point string

const (
	running point = "its handler ends when the master has failed"
	soon    point = "its handler ends when somebody was promoted"
	late    point = "its handler ends when there is another master"
	sent    point = "its commit is sent, and Redis has not got it"
	unheard point = "its commit is done, and nobody has heard"
	heard   point = "its commit is done, and its client has the answer"
)

// ending is the part of idempotent requests that end when the master fails.
type ending struct {
	*scene
	stories []*story
	clean   []*service // that have nothing to do with the requests before
}

// A story is one of these requests, and what became of it.
type story struct {
	*scene
	point    point
	overGRPC bool
	service  *service
	proxy    *redistest.Proxy // to the master
	q        question
	mayEnd   chan struct{}
	answered chan struct{} // closed when first is set
	first    answer
	retries  []answer
	release  []func()
}

func (e *ending) begin() {
	for n := range 2 {
		e.clean = append(e.clean, e.service(n, streamWait))
	}
	for i, at := range []point{running, soon, late, sent, unheard, heard} {
		for _, overGRPC := range []bool{false, true} {
			st := &story{
				scene: e.scene, point: at, overGRPC: overGRPC,
				mayEnd: make(chan struct{}), answered: make(chan struct{}),
			}
			st.serve(i)
			st.start(fmt.Sprintf("%s-%d-%v", e.name, i, overGRPC))
			e.stories = append(e.stories, st)
		}
	}
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

// start sends the request, and returns when its handler has had its effect.
func (st *story) start(name string) {
	// The scripts are known to Redis from then on: each is one command.
	warm := st.questionAt(name + "-warm")
	if a := st.ask("warm", st.service, warm); !a.fine() {
		st.t.Fatalf("%v", a)
	}
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
		st.first = st.ask("first", st.service, st.q)
	})
	awaitClosed(st.t, "the handler has come in", entered)
}

// ask asks, and fails the test if the answer is one that must not be.
func (st *story) ask(request string, s *service, q question) answer {
	q.request = q.key + " " + request
	ctx, cancel := context.WithTimeout(st.ctx, patience)
	defer cancel()
	a := s.ask(ctx, st.overGRPC, q)
	if fault := a.fault(q, st.ledger.of(q.key)); fault != "" {
		st.t.Errorf("%s: %s: %s", st.point, q.request, fault)
	}
	return a
}

// isCommit picks finish.lua with an answer, for this request.
func (st *story) isCommit(command []string) bool {
	return strings.HasPrefix(command[0], "EVAL") && len(command) > 13 && command[2] == "3" &&
		command[3] == prefix+st.q.endpoint(st.overGRPC) && command[11] == "D"
}

// inTime is how soon others have to have found the new master, where a commit, which
// is tried for twice as long, has to have found it too.
const inTime = time.Second

// enough is how many sends of a commit are caught until the master fails.
const enough = 6

func (e *ending) poise() {
	for _, st := range e.stories {
		st.poise()
	}
}

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
			if dropped := st.proxy.DropReply(st.isCommit, redistest.Swallow); i == 0 {
				caught = dropped
			}
		}
	case heard:
		caught = st.answered
	case running:
		st.endAfter(st.struck)
		return
	case soon:
		st.endAfter(st.promotion.done)
		return
	case late:
		return
	}
	close(st.mayEnd)
	awaitClosed(st.t, string(st.point), caught)
}

// endAfter ends the handler when the channel is closed.
func (st *story) endAfter(happened <-chan struct{}) {
	st.group.Go(func() {
		select {
		case <-happened:
		case <-st.ctx.Done():
		}
		close(st.mayEnd)
	})
}

func (e *ending) replace() {
	for _, st := range e.stories {
		for _, release := range st.release {
			release() // it arrives late, if at all
		}
		if st.point == late {
			close(st.mayEnd)
		}
	}
}

// tries is how often the request comes again.
const tries = 4

func (e *ending) end() {
	var became tally
	for _, st := range e.stories {
		awaitClosed(e.t, "the client has an answer", st.answered)
		for i := range tries {
			st.retries = append(st.retries, st.retry(i, e.clean[i%2]))
		}
		became.add(st.judge())
	}
	e.figures.note("%s", &became)
}

// retry sends the request again, until what comes back is about it.
func (st *story) retry(i int, s *service) (a answer) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		a = st.ask(fmt.Sprintf("retry %d", i), s, st.q)
		if a.fine() || a.code == "outcome_unknown" {
			return a
		}
	}
	st.t.Errorf("%s: no end: %v", st.point, a)
	return a
}

// judge compares what became of the request with what is promised, and names it.
func (st *story) judge() string {
	runs, key := st.ledger.of(st.q.key), st.q.endpoint(st.overGRPC)
	told := func(word string) bool { return st.service.told(word, key) > 0 }
	fail := func(format string, args ...any) {
		st.t.Errorf("%s, over gRPC %v: %s; %d runs, first %v, retries %v, committed %v, restored %v, unstored %v, refused %v",
			st.point, st.overGRPC, fmt.Sprintf(format, args...), len(runs), st.first, st.retries,
			told(committed), told(restored), told(unstored), told(refused))
	}
	// The handler ran, so its answer is sent, whatever became of the commit.
	if !st.first.fine() || st.first.replayed || st.first.body != runs[0].id {
		fail("the client has another answer than that of the handler")
	}
	last := st.retries[len(st.retries)-1]
	for _, a := range st.retries[1:] {
		if a.code != last.code || a.body != last.body || a.fine() && !a.replayed {
			fail("retries differ")
			break
		}
	}
	switch again := st.retries[0]; {
	case len(runs) > 2, len(runs) == 2 && st.failure.loss == nothing:
		fail("more effects than the loss allows")
		return "wrong"
	case len(runs) == 2:
		if again.replayed || last.body != runs[1].id {
			fail("the second run is not what is kept")
		}
		if told(restored) {
			fail("it was restored, and ran again")
		}
		return "run again"
	case last.code == "outcome_unknown":
		if !told(unstored) && st.failure.loss == nothing {
			fail("nobody was told that it is not stored")
		}
		if st.failure.loss == nothing && (st.point == late || st.point == soon && st.figures.first < st.figures.promoted+inTime) {
			fail("there was a master to store it")
		}
		return "unknown"
	default:
		if again.body != st.first.body || !again.replayed {
			fail("the replay is not what the client has")
		}
		if st.failure.loss == all && st.point == heard {
			fail("it was lost")
		}
		return "replayed"
	}
}

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// handoverCases answer a request, and give one of its locks to another process.
func handoverCases() []testCase {
	return []testCase{
		{"a worker takes a lock over after the answer, and a second request is busy until its end", everywhere, func(e *environment) {
			workerTakesOver(e, true, func(c call) { c.Reply("accepted") })
		}},
		{"a worker takes a lock over after a panic of the handler", everywhere, func(e *environment) {
			workerTakesOver(e, false, func(call) { panic(errors.New("crash")) })
		}},
	}
}

// handOver hands a lease over, and returns what a job store has.
func (e *environment) handOver(ctx context.Context, lease *core.Lease) []byte {
	e.Helper()
	ticket, err := lease.Handover(ctx, time.Minute)
	if err != nil || !errors.Is(context.Cause(ctx), core.ErrHandedOver) {
		e.Errorf("Handover: %v; the context has ended with %v", err, context.Cause(ctx))
	}
	payload, err := json.Marshal(ticket)
	if err != nil {
		e.Errorf("Marshal: %v", err)
	}
	return payload
}

// accept takes a lease over in another process.
func (e *environment) accept(payload []byte) *core.Lease {
	e.Helper()
	var ticket core.Ticket
	if err := json.Unmarshal(payload, &ticket); err != nil {
		e.Fatalf("Unmarshal: %v", err)
	}
	lease, err := e.another().With(core.WithFencing(true)).Accept(e.Context(), ticket)
	if err != nil {
		e.Fatalf("Accept: %v", err)
	}
	return lease
}

func workerTakesOver(e *environment, answers bool, end func(call)) {
	jobs, fences := make(chan []byte, 1), make(chan int64, 1)
	fencing := []core.Option{core.WithFencing(true)}
	s := e.serve(route{
		recovers: true,
		group:    []lock{{keys: []key{bySecond}, options: fencing}},
		locks:    []lock{{keys: []key{byHeader}, options: fencing}},
		handler: func(c call) {
			if len(fences) > 0 {
				c.Reply("second")
				return
			}
			lease, _ := c.Lease()
			fences <- lease.Fence()
			jobs <- e.handOver(c.Context(), lease)
			end(c)
		},
	})
	if first := s.send(e.Context(), plain); first.ok != answers || answers && first.text != "accepted" {
		e.Errorf("the answer is %+v", first)
	}
	payload := suite.Receive(e.T, "the handler has handed its lock over", jobs)
	busy := func() {
		e.Helper()
		s.wantRefusal(request{keys: []string{theKey}, second: "another"}, e.rowOf(refused(core.ErrBusy, defaultRetryAfter)))
	}
	suite.Eventually(e.T, "the other lock is free", func() bool { return !e.held(secondKey) })
	busy() // although nobody acts under the lock
	lease := e.accept(payload)
	busy()
	if before := <-fences; lease.Key() != theKey || lease.Fence() <= before || lease.Context().Err() != nil {
		e.Errorf("%v has the number %d after %d, and its context %v", lease, lease.Fence(), before, lease.Context().Err())
	}
	fences <- 0
	if err := lease.Release(e.Context()); err != nil {
		e.Errorf("Release: %v", err)
	}
	s.wantReply(plain, "second")
}

// handoverScenarios answer 202 to an idempotent request, while another process has the lock inside.
func handoverScenarios() []testCase {
	return []testCase{
		{"the 202 of a request whose lock a worker takes over is stored", everywhere, acceptedIsStored},
	}
}

func acceptedIsStored(e *environment) {
	jobs := make(chan []byte, 1)
	s := e.serveEndpoint(endpoint{
		inside: &lock{keys: []key{byHeader}, options: []core.Option{core.WithFencing(true)}},
		handler: func(t invocation) {
			lease, _ := core.LeaseFromContext(t.r.Context())
			jobs <- e.handOver(t.r.Context(), lease)
			t.Header().Set("Location", "/orders/1")
			t.WriteHeader(http.StatusAccepted)
		},
	})
	r := behindTheKey()
	first := s.runsWith(http.StatusAccepted, r)
	s.replays(first, r)
	lease := e.accept(suite.Receive(e.T, "the handler has handed its lock over", jobs))
	s.replays(first, r) // while the worker has the lock
	if err := lease.Release(e.Context()); err != nil {
		e.Errorf("Release: %v", err)
	}
	s.replays(first, r)
}

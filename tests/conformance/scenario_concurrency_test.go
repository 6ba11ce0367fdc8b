package conformance

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
)

// concurrencyScenarios send copies of a request at the same time.
func concurrencyScenarios() []testCase {
	return []testCase{
		{"one of a hundred copies runs, and the others are refused with Retry-After", everywhere, copiesAreRefused},
		{"one of a hundred copies runs, and the others wait for its answer", everywhere, copiesWait},
		{"the client of a waiting copy disconnects", disconnects, waiterGoes},
		{"copies of two processes", everywhere, twoProcesses},
	}
}

// manyCopies is how many copies are sent at once.
const manyCopies = 100

// sendCopies sends n copies of a payment at once.
func (s *service) sendCopies(n int, r httpRequest) []httpAnswer {
	answers := make([]httpAnswer, n)
	var sent sync.WaitGroup
	for i := range answers {
		sent.Go(func() { answers[i] = s.do(s.Context(), r) })
	}
	sent.Wait()
	return answers
}

func copiesAreRefused(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		e.events.await(e.T, core.Refused, manyCopies-1)
		t.WriteHeader(http.StatusCreated)
	}})
	created := 0
	for _, answer := range s.sendCopies(manyCopies, payment("crowd")) {
		if answer.status == http.StatusCreated {
			created++
			continue
		}
		s.wantRefused(core.ErrBusy, answer)
	}
	if n := s.runs.Load(); n != 1 || created != 1 {
		e.Errorf("%d have run, %d were answered", n, created)
	}
}

func copiesWait(e *environment) {
	s := e.serveEndpoint(endpoint{
		options: []core.Option{core.WithWait(patience)},
		handler: func(t invocation) {
			e.events.await(e.T, core.Waiting, manyCopies-1)
			t.Header().Set("Location", "/payments/1")
			t.WriteHeader(http.StatusCreated)
			_, _ = t.Write([]byte("paid"))
		},
	})
	answers := s.sendCopies(manyCopies, payment("crowd"))
	var first httpAnswer
	for _, answer := range answers {
		if answer.header["Idempotent-Replayed"] == nil {
			first = answer
		}
	}
	if first.body != "paid" {
		e.Errorf("the first answer is %+v", first)
	}
	firsts := 0
	for _, answer := range answers {
		if answer.header["Idempotent-Replayed"] == nil {
			firsts++
			continue
		}
		s.wantReplay(first, answer)
	}
	if n := s.runs.Load(); n != 1 || firsts != 1 {
		e.Errorf("%d have run, %d answers are not replayed", n, firsts)
	}
}

// The body has been read, so that net/http notices that the client disconnects.
func waiterGoes(e *environment) {
	var s *service
	s = e.serveEndpoint(endpoint{
		options: []core.Option{core.WithWait(time.Minute)},
		handler: func(t invocation) {
			ctx, cancel := context.WithCancel(e.Context())
			defer cancel()
			left := make(chan struct{})
			go func() {
				defer close(left)
				e.events.await(e.T, core.Waiting, 1)
				cancel()
			}()
			if answer := s.do(ctx, payment("gone")); answer.err == nil {
				e.Errorf("an answer for a client that has disconnected: %+v", answer)
			}
			<-left
			e.events.await(e.T, core.Refused, 1)
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.replays(s.runsWith(http.StatusCreated, payment("gone")), payment("gone"))
}

// A process replays the answer of another process.
func twoProcesses(e *environment) {
	other := *e
	other.locks = e.another()
	var there *service
	here := e.serveEndpoint(endpoint{handler: func(t invocation) {
		there.wantRefused(core.ErrBusy, there.do(e.Context(), payment("process")))
		t.WriteHeader(http.StatusCreated)
	}})
	there = other.serveEndpoint(endpoint{})
	first := here.runsWith(http.StatusCreated, payment("process"))
	there.replays(first, payment("process"))
}

// another returns the Locker of another process.
func (e *environment) another() *core.Locker {
	e.Helper()
	locks := core.Must(core.New(e.rdb, busyMachine(core.WithPrefix(e.prefix), core.WithProblemType(problemType))...))
	e.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Close must not wait for an attempt that never ends
		_ = locks.Close(ctx)
	})
	return locks
}

func copiesRefused(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Refused, manyCopies-1)
		return nil
	})
	ran := 0
	for _, r := range p.manyCopies(manyCopies) {
		if r.ok {
			ran++
			continue
		}
		p.wantRefused(r, refused(core.ErrBusy, time.Second))
	}
	if ran != 1 {
		b.Errorf("%d have an answer", ran)
	}
	b.wantRuns(1)
}

func copiesOfTwoProcesses(b *grpcEnvironment) {
	locks, _ := b.process(core.WithObserver(b.events.observe))
	handle := func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, manyCopies-1)
		return nil
	}
	here, there := b.serve(handle, core.WithWait(patience)), b.serveOn(locks, handle, core.WithWait(patience))
	answers := make(chan []grpcAnswer, 1)
	go func() { answers <- there.manyCopies(manyCopies / 2) }()
	all := append(here.manyCopies(manyCopies/2), <-answers...)
	first := slices.IndexFunc(all, func(r grpcAnswer) bool { return !r.replayed() })
	if first < 0 {
		b.Fatal("all answers are replays")
	}
	for i, r := range all {
		if i != first {
			here.wantReplay(all[first], r)
		}
	}
	b.wantRuns(1)
}

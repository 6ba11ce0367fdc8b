package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcConcurrencyScenarios send copies at the same time.
func grpcConcurrencyScenarios() []grpcScenario {
	return []grpcScenario{
		{"copies: one of a hundred runs, and the others are refused with RetryInfo", copiesRefused},
		{"copies: all waiting copies get the one answer", copiesReplayed},
		{"copies: the first call fails and frees its key, and one waiting copy runs", waiterRunsAfterFailure},
		{"copies: a copy is refused when its wait times out", waitTimeout},
		{"copies: the client of a waiting copy disconnects", waiterCancels},
		{"copies: the queue is full", queueFull},
		{"copies: two processes", copiesOfTwoProcesses},
	}
}

// manyCopies sends n copies at once and returns their answers.
func (p *grpcClient) manyCopies(n int) []grpcAnswer {
	answers := make([]grpcAnswer, n)
	var sent sync.WaitGroup
	for i := range answers {
		sent.Go(func() { answers[i] = p.pay() })
	}
	sent.Wait()
	return answers
}

// wantOneFirst fails the test unless one of the answers is unmarked, and all others replay it.
func (p *grpcClient) wantOneFirst(answers []grpcAnswer) {
	p.b.Helper()
	var first grpcAnswer
	firsts := 0
	for _, r := range answers {
		if !r.replayed() {
			first = r
			firsts++
		}
	}
	if firsts != 1 {
		p.b.Fatalf("%d answers are no replays", firsts)
	}
	for _, r := range answers {
		if r.replayed() {
			p.wantReplay(first, r)
		}
	}
}

func copiesRefused(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Refused, 99)
		return nil
	})
	ran := 0
	for _, r := range p.manyCopies(100) {
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

func copiesReplayed(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 99)
		return nil
	}, core.WithWait(patience))
	p.wantOneFirst(p.manyCopies(100))
	b.wantRuns(1)
}

func waiterRunsAfterFailure(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 8)
		if b.runs.Load() == 1 {
			return refusedBy(codes.Unavailable)
		}
		return nil
	}, core.WithWait(patience), grpclock.FreeOnFailure())
	var failed int
	var rest []grpcAnswer
	for _, r := range p.manyCopies(9) {
		if r.status == int(codes.Unavailable) {
			failed++
		} else {
			rest = append(rest, r)
		}
	}
	if failed != 1 {
		b.Errorf("%d have failed", failed)
	}
	p.wantOneFirst(rest)
	b.wantRuns(2)
}

func waitTimeout(b *grpcEnvironment) {
	var p *grpcClient
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		p.wantRefused(p.pay(), refused(core.ErrWaitTimeout, time.Second))
		return nil
	}, core.WithWait(shortWait))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// The request leaves the queue, and does not run.
func waiterCancels(b *grpcEnvironment) {
	var p *grpcClient
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		left := make(chan struct{})
		go func() {
			defer close(left)
			b.events.await(b.T, core.Waiting, 1)
			cancel()
		}()
		if r := p.send(ctx, theKey, paid); r.status != int(codes.Canceled) {
			b.Errorf("%+v", r)
		}
		<-left
		for _, event := range b.events.await(b.T, core.Refused, 1) {
			if !errors.Is(event.Err, context.Canceled) {
				b.Errorf("refused because of %v", event.Err)
			}
		}
		return nil
	}, core.WithWait(patience))
	p.wantFirst(p.pay(), 1)
	b.wantRuns(1)
}

func queueFull(b *grpcEnvironment) {
	var refusedCount atomic.Int32
	locks, _ := b.process(core.WithMaxWaiters(2), core.WithObserver(b.events.observe))
	p := b.serveOn(locks, func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 2)
		b.events.await(b.T, core.Refused, 2)
		return nil
	}, core.WithWait(patience))
	var rest []grpcAnswer
	for _, r := range p.manyCopies(5) {
		if r.ok {
			rest = append(rest, r)
			continue
		}
		refusedCount.Add(1)
		p.wantRefused(r, refused(core.ErrQueueFull, time.Second))
	}
	if refusedCount.Load() != 2 {
		b.Errorf("%d were refused", refusedCount.Load())
	}
	p.wantOneFirst(rest)
}

// Copies wait in both processes. All get the one answer.
func copiesOfTwoProcesses(b *grpcEnvironment) {
	locks, _ := b.process(core.WithObserver(b.events.observe))
	handle := func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 9)
		return nil
	}
	here, there := b.serve(handle, core.WithWait(patience)), b.serveOn(locks, handle, core.WithWait(patience))
	var all [2][]grpcAnswer
	var sent sync.WaitGroup
	for i, p := range []*grpcClient{here, there} {
		sent.Go(func() { all[i] = p.manyCopies(5) })
	}
	sent.Wait()
	here.wantOneFirst(append(all[0], all[1]...))
	b.wantRuns(1)
}

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
)

// grpcCrowdScenarios are about copies that come at the same time.
func grpcCrowdScenarios() []grpcScenario {
	return []grpcScenario{
		{"crowd: of a hundred copies one runs, the others are told when to retry", crowdTold},
		{"crowd: all who wait get the one answer", crowdReplayed},
		{"crowd: the first frees its key, and one of those who wait runs", crowdFreed},
		{"crowd: a wait that is over", crowdTimeout},
		{"crowd: a client that goes while it waits", crowdLeaves},
		{"crowd: as many wait as may", crowdFull},
		{"crowd: two processes", crowdProcesses},
	}
}

// crowd sends so many copies at once and returns what they got.
func (p *submission) crowd(n int) []receipt {
	receipts := make([]receipt, n)
	var sent sync.WaitGroup
	for i := range receipts {
		sent.Go(func() { receipts[i] = p.pay() })
	}
	sent.Wait()
	return receipts
}

// wantOneFirst fails the test unless one of the answers is no replay, and all
// others are its replays.
func (p *submission) wantOneFirst(receipts []receipt) {
	p.b.Helper()
	var first receipt
	firsts := 0
	for _, r := range receipts {
		if !r.replayed() {
			first = r
			firsts++
		}
	}
	if firsts != 1 {
		p.b.Fatalf("%d answers are no replays", firsts)
	}
	for _, r := range receipts {
		if r.replayed() {
			p.wantReplay(first, r)
		}
	}
}

func crowdTold(b *teller) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Refused, 99)
		return nil
	})
	ran := 0
	for _, r := range p.crowd(100) {
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

func crowdReplayed(b *teller) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 99)
		return nil
	}, core.WithWait(patience))
	p.wantOneFirst(p.crowd(100))
	b.wantRuns(1)
}

func crowdFreed(b *teller) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 8)
		if b.runs.Load() == 1 {
			return refusedBy(codes.Unavailable)
		}
		return nil
	}, core.WithWait(patience))
	var failed int
	var rest []receipt
	for _, r := range p.crowd(9) {
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

func crowdTimeout(b *teller) {
	var p *submission
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		p.wantRefused(p.pay(), refused(core.ErrWaitTimeout, time.Second))
		return nil
	}, core.WithWait(shortWait))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// It stands in no line any more, and nothing runs for it.
func crowdLeaves(b *teller) {
	var p *submission
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		ctx, leave := context.WithCancel(b.Context())
		defer leave()
		left := make(chan struct{})
		go func() {
			defer close(left)
			b.events.await(b.T, core.Waiting, 1)
			leave()
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

func crowdFull(b *teller) {
	var told atomic.Int32
	locks, _ := b.process(core.WithMaxWaiters(2), core.WithObserver(b.events.observe))
	p := b.serveOn(locks, func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 2)
		b.events.await(b.T, core.Refused, 2)
		return nil
	}, core.WithWait(patience))
	var rest []receipt
	for _, r := range p.crowd(5) {
		if r.ok {
			rest = append(rest, r)
			continue
		}
		told.Add(1)
		p.wantRefused(r, refused(core.ErrQueueFull, time.Second))
	}
	if told.Load() != 2 {
		b.Errorf("%d were refused", told.Load())
	}
	p.wantOneFirst(rest)
}

// Each process has copies that wait; the answer of one is that of both.
func crowdProcesses(b *teller) {
	locks, _ := b.process(core.WithObserver(b.events.observe))
	handle := func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Waiting, 9)
		return nil
	}
	here, there := b.serve(handle, core.WithWait(patience)), b.serveOn(locks, handle, core.WithWait(patience))
	var all [2][]receipt
	var sent sync.WaitGroup
	for i, p := range []*submission{here, there} {
		sent.Go(func() { all[i] = p.crowd(5) })
	}
	sent.Wait()
	here.wantOneFirst(append(all[0], all[1]...))
	b.wantRuns(1)
}

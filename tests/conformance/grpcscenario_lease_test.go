package conformance

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// grpcLeaseScenarios test attempts whose process is killed or disconnected from Redis.
func grpcLeaseScenarios() []grpcScenario {
	return []grpcScenario{
		{"lease: after a killed process with Reject", leaseDies},
		{"lease: after a killed process with Rerun", leaseDiesRerun},
		{"lease: after a killed process an operator resolves the outcome", leaseResolved},
		{"lease: after a killed process an operator says that the call was done", leaseResolvedAsDone},
		{"lease: after a killed process an operator answers with a message", leaseAnswered},
		{"lease: after a killed process an operator answers with a status", leaseAnsweredWithStatus},
		{"lease: a handler that runs longer than the TTL keeps its key", leaseRenewed},
		{"lease: lost, and no other attempt has begun", leaseLateCommit},
		{"lease: lost, and another attempt has run", leaseTakenOver},
		{"lease: the client disconnects while the handler runs", leaseClientGoes},
	}
}

// killedProcess begins an attempt of theKey and never ends it. It returns when the lease has
// expired.
func (b *grpcEnvironment) killedProcess() {
	b.Helper()
	locks, proxy := b.process(core.WithTTL(shortLease), core.WithWait(patience))
	endpoint := core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey)
	attempt, err := locks.Begin(b.Context(), endpoint, nil)
	if err != nil {
		b.Fatalf("Begin: %v", err)
	}
	b.Cleanup(func() {
		proxy.HealDropped()
		_ = attempt.Abort(context.Background()) // too late for an effect
	})
	proxy.Partition()
	b.awaitFree(endpoint)
}

// awaitFree waits until the lock of an attempt is gone. It may be called from any goroutine.
func (b *grpcEnvironment) awaitFree(endpoint string) {
	b.Helper()
	suite.EventuallyAnywhere(b.T, "the lock has ended", func() bool { return !b.held("i:" + endpoint) })
}

func leaseDies(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint(), core.WithWait(patience))
	b.killedProcess()
	for range 2 {
		p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	}
	b.wantRuns(0)
}

func leaseDiesRerun(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		if attempt, _ := grpclock.AttemptFromContext(ctx); attempt.Number() != 2 {
			b.Errorf("attempt %d", attempt.Number())
		}
		return nil
	}, grpclock.WithoutFingerprint(), core.WithInterrupted(core.Rerun))
	b.killedProcess()
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

func leaseResolved(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	b.killedProcess()
	p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	if err := b.resolve(core.Forget()); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	first := p.wantFirst(p.pay(), 1)
	if err := b.resolve(core.Forget()); !errors.Is(err, core.ErrChanged) {
		b.Errorf("Resolve: %v", err)
	}
	p.wantReplay(first, p.pay()) // Resolve does not delete an answer
}

// resolve says what became of the call with theKey.
func (b *grpcEnvironment) resolve(resolution core.Resolution) error {
	b.Helper()
	endpoint, err := grpclock.EndpointKey(pb.TestService_UnaryCall_FullMethodName, theKey)
	if err != nil {
		b.Fatal(err)
	}
	outcome, err := b.locks.Outcome(b.Context(), endpoint)
	if err != nil {
		return err
	}
	return b.locks.Resolve(b.Context(), endpoint, resolution, outcome.Seen)
}

func leaseResolvedAsDone(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	b.killedProcess()
	if err := b.resolve(core.Done()); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	p.wantRefused(p.pay(), refused(core.ErrUnreplayable, 0))
	b.wantRuns(0)
}

func leaseAnswered(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	b.killedProcess()
	record, err := grpclock.Answer(&pb.SimpleResponse{Username: "by hand"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := b.resolve(core.Answered(record)); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	if r := p.pay(); r.err != nil || r.message.GetUsername() != "by hand" || len(r.header.Get("idempotent-replayed")) != 1 {
		b.Errorf("the copy got %+v", r)
	}
	b.wantRuns(0)
}

func leaseAnsweredWithStatus(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	b.killedProcess()
	record, err := grpclock.Answer(nil, status.Error(codes.FailedPrecondition, "declined"))
	if err != nil {
		b.Fatal(err)
	}
	if err := b.resolve(core.Answered(record)); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	if s := status.Convert(p.pay().err); s.Code() != codes.FailedPrecondition || s.Message() != "declined" {
		b.Errorf("the copy got %v", s)
	}
	b.wantRuns(0)
}

// A handler that takes longer than the TTL keeps its key.
func leaseRenewed(b *grpcEnvironment) {
	var p *grpcClient
	p = b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		b.events.await(b.T, core.Renewed, 4)
		p.wantRefused(p.pay(), refused(core.ErrBusy, time.Second))
		return ctx.Err()
	}, core.WithTTL(3*time.Second))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// cutOff serves with a Locker that is disconnected from Redis during its first handler until
// the lease has expired. Then it calls meanwhile, and connects Redis again.
func (b *grpcEnvironment) cutOff(meanwhile func(), opts ...grpclock.Option) *grpcClient {
	b.Helper()
	locks, proxy := b.process()
	return b.serveOn(locks, func(ctx context.Context, _ *pb.SimpleRequest) error {
		if b.runs.Load() > 1 {
			return nil
		}
		proxy.Partition()
		defer proxy.HealDropped()
		suite.ReceiveAnywhere(b.T, "the context ends", ctx.Done())
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			b.Errorf("the cause is %v", cause)
		}
		b.awaitFree(core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey))
		meanwhile()
		return nil
	}, append(opts, core.WithTTL(shortLease), core.WithWait(patience))...)
}

// A late answer is stored if no other attempt has begun.
func leaseLateCommit(b *grpcEnvironment) {
	p := b.cutOff(func() {})
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// The answer of the later attempt is stored. The attempt that lost its lease answers its own
// client only.
func leaseTakenOver(b *grpcEnvironment) {
	there := b.serve(nil, core.WithInterrupted(core.Rerun))
	var second grpcAnswer
	here := b.cutOff(func() { second = there.wantFirst(there.pay(), 2) }, core.WithInterrupted(core.Rerun))
	here.wantFirst(here.pay(), 1)
	there.wantReplay(second, there.pay())
	here.wantReplay(second, here.pay())
	b.wantRuns(2)
}

// The handler goes on after its client has left or its deadline is over. The client calls again,
// and gets the answer.
func leaseClientGoes(b *grpcEnvironment) {
	outer, proceed := make(chan context.Context, 2), make(chan struct{}, 1)
	around := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		outer <- ctx
		return next(ctx, m)
	}
	p := b.serveBehind(func(ctx context.Context, _ *pb.SimpleRequest) error {
		proceed <- struct{}{}
		suite.ReceiveAnywhere(b.T, "the server has learnt that the client left", (<-outer).Done())
		if n := b.locks.AttemptsWithoutClient(); n != 1 {
			b.Errorf("%d attempts without a client", n)
		}
		return ctx.Err()
	}, around, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), core.WithWait(patience)))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	left := make(chan struct{})
	go func() {
		defer close(left)
		suite.ReceiveAnywhere(b.T, "the handler runs", proceed)
		cancel()
	}()
	if r := p.send(ctx, theKey, paid); r.status != int(codes.Canceled) {
		b.Errorf("%+v", r)
	}
	<-left
	if r := p.pay(); !r.replayed() || r.text != "1" {
		b.Errorf("%+v", r)
	}
	b.wantRuns(1)
}

package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcLeaseScenarios are about attempts whose process dies or is cut off, and
// about what else may be around a call.
func grpcLeaseScenarios() []grpcScenario {
	return []grpcScenario{
		{"lease: a process that dies, Reject", leaseDies},
		{"lease: a process that dies, Rerun", leaseDiesRerun},
		{"lease: a process that dies, and an operator", leaseResolved},
		{"lease: one that is kept alive", leaseRenewed},
		{"lease: lost, and nobody has come since", leaseLateCommit},
		{"lease: lost, and another has run since", leaseTakenOver},
		{"lease: the client goes while the handler runs", leaseClientGoes},
		{"chain: two interceptors with the same key", chainSameKey},
		{"chain: methods that ByMethod does not list", chainByMethod},
		{"chain: a client that tries again by itself", chainClientRetries},
		{"chain: a locker that fails open is refused", chainFailOpen},
		{"chain: streams pass by", chainStreams},
	}
}

// deadProcess begins theKey as a process does that is never heard of again. It
// returns when its lease has ended.
func (b *teller) deadProcess() {
	b.Helper()
	locks, proxy := b.process(core.WithTTL(shortLease), core.WithWait(patience))
	endpoint := core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey)
	attempt, err := locks.Begin(b.Context(), endpoint, nil)
	if err != nil {
		b.Fatalf("Begin: %v", err)
	}
	b.Cleanup(func() {
		proxy.HealDropped()
		_ = attempt.Abort(context.Background()) // it is too late, or does no harm
	})
	proxy.Partition()
	b.awaitFree(endpoint)
}

// awaitFree waits until the lock of an attempt has ended. It may be called from
// any goroutine.
func (b *teller) awaitFree(endpoint string) {
	b.Helper()
	for late := time.Now().Add(patience); b.held("i:" + endpoint); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			b.Errorf("the lock has not ended")
			return
		}
	}
}

func leaseDies(b *teller) {
	p := b.serve(nil, grpclock.WithoutFingerprint(), core.WithWait(patience))
	b.deadProcess()
	for range 2 {
		p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	}
	b.wantRuns(0)
}

func leaseDiesRerun(b *teller) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		if attempt, _ := grpclock.AttemptFromContext(ctx); attempt.Number() != 2 {
			b.Errorf("attempt %d", attempt.Number())
		}
		return nil
	}, grpclock.WithoutFingerprint(), core.WithInterrupted(core.Rerun))
	b.deadProcess()
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

func leaseResolved(b *teller) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	b.deadProcess()
	p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	endpoint := core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey)
	if err := b.locks.Resolve(b.Context(), endpoint); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	first := p.wantFirst(p.pay(), 1)
	if err := b.locks.Resolve(b.Context(), endpoint); err != nil {
		b.Errorf("Resolve: %v", err)
	}
	p.wantReplay(first, p.pay()) // what is done stays done
}

// A handler that takes longer than its lease keeps its key.
func leaseRenewed(b *teller) {
	var p *submission
	p = b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		b.events.await(b.T, core.Renewed, 4)
		p.wantRefused(p.pay(), refused(core.ErrBusy, time.Second))
		return ctx.Err()
	}, core.WithTTL(3*time.Second))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// cutOff serves as a process does that loses Redis while its first handler runs,
// until its lease has ended; then meanwhile is done, and Redis is back.
func (b *teller) cutOff(meanwhile func(), opts ...grpclock.Option) *submission {
	b.Helper()
	locks, proxy := b.process()
	return b.serveOn(locks, func(ctx context.Context, _ *pb.SimpleRequest) error {
		if b.runs.Load() > 1 {
			return nil
		}
		proxy.Partition()
		defer proxy.HealDropped()
		await(b.T, "the context ends", ctx.Done())
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			b.Errorf("the cause is %v", cause)
		}
		b.awaitFree(core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey))
		meanwhile()
		return nil
	}, append(opts, core.WithTTL(shortLease), core.WithWait(patience))...)
}

// An answer that is late is stored, where nobody has begun since.
func leaseLateCommit(b *teller) {
	p := b.cutOff(func() {})
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// The answer of who came later is stored. Who lost its lease sends its own
// answer, once.
func leaseTakenOver(b *teller) {
	there := b.serve(nil, core.WithInterrupted(core.Rerun))
	var second receipt
	here := b.cutOff(func() { second = there.wantFirst(there.pay(), 2) }, core.WithInterrupted(core.Rerun))
	here.wantFirst(here.pay(), 1)
	there.wantReplay(second, there.pay())
	here.wantReplay(second, here.pay())
	b.wantRuns(2)
}

func leaseClientGoes(b *teller) {
	running := make(chan struct{}, 1)
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		running <- struct{}{}
		await(b.T, "the handler knows", ctx.Done())
		return nil
	}, core.WithWait(patience))
	ctx, leave := context.WithCancel(b.Context())
	defer leave()
	left := make(chan struct{})
	go func() {
		defer close(left)
		await(b.T, "the handler runs", running)
		leave()
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

func chainSameKey(b *teller) {
	interceptor := grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey())
	p := b.serveBehind(func(ctx context.Context, _ *pb.SimpleRequest) error {
		attempt, _ := grpclock.AttemptFromContext(ctx)
		attempt.Decide(core.StoreAnswer) // counts for the outer one
		return refusedBy(codes.Unavailable)
	}, interceptor, interceptor)
	first := p.pay()
	if first.status != int(codes.Unavailable) {
		b.Errorf("%+v", first)
	}
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
	if got := b.events.count(core.Acquired); got != 1 {
		b.Errorf("%d leases", got)
	}
}

func chainByMethod(b *teller) {
	key := grpclock.ByMethod(map[string]grpclock.KeyFunc{
		pb.TestService_EmptyCall_FullMethodName: grpclock.IdempotencyKey(),
	})
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, key))
	for n := range 2 {
		p.wantFirst(p.pay(), n+1)
	}
}

// What a client sends again by itself, as its retry policy says, has the same
// key; that it says so is no obstacle.
func chainClientRetries(b *teller) {
	var attempts []string
	note := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		attempts = append(attempts, fmt.Sprint(incoming(ctx, "grpc-previous-rpc-attempts")))
		return next(ctx, m)
	}
	p := b.serveBehind(func(context.Context, *pb.SimpleRequest) error {
		if b.runs.Load() == 1 {
			return refusedBy(codes.Unavailable)
		}
		return nil
	}, note, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()))
	p = p.retrying(codes.Unavailable)
	first := p.wantFirst(p.pay(), 2)
	p.wantReplay(first, p.pay())
	if got := fmt.Sprint(attempts); got != "[[] [1] []]" {
		b.Errorf("attempts of the client: %s", got)
	}
}

func chainFailOpen(b *teller) {
	defer func() {
		if recover() == nil {
			b.Error("no panic")
		}
	}()
	grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), core.WithFailOpen(true))
}

// An interceptor for unary calls does not see them.
func chainStreams(b *teller) {
	ran := 0
	s := listenGRPC(b.T, service{r: route{handler: func(c call) {
		ran++
		if _, ok := grpclock.AttemptFromContext(c.Context()); ok {
			b.Error("a stream runs as an attempt")
		}
		c.Reply("done")
	}}}, serverStream, grpc.ChainUnaryInterceptor(grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey())))
	for range 2 {
		if got := s.send(b.Context(), request{marks: []string{theKey}}); !got.ok {
			b.Errorf("%+v", got)
		}
	}
	if ran != 2 {
		b.Errorf("%d have run", ran)
	}
}

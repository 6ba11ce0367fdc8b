package conformance

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// grpcChainScenarios test other interceptors around a call.
func grpcChainScenarios() []grpcScenario {
	return []grpcScenario{
		{"chain: two interceptors with the same key", chainSameKey},
		{"chain: methods that ByMethod does not list", chainByMethod},
		{"chain: a client with a retry policy", chainClientRetries},
		{"chain: a retry policy waits as long as a refusal says", chainClientWaits},
		{"chain: a retry policy ends where a retry is useless", chainClientStops},
		{"chain: a locker that fails open is refused", chainFailOpen},
		{"chain: streams are not affected", chainStreams},
	}
}

func chainSameKey(b *grpcEnvironment) {
	interceptor := grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey())
	p := b.serveBehind(func(ctx context.Context, _ *pb.SimpleRequest) error {
		attempt, _ := grpclock.AttemptFromContext(ctx)
		attempt.Decide(core.StoreAnswer) // applies to the outer interceptor
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

func chainByMethod(b *grpcEnvironment) {
	key := grpclock.ByMethod(map[string]grpclock.KeyFunc{
		pb.TestService_EmptyCall_FullMethodName: grpclock.IdempotencyKey(),
	})
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, key))
	for n := range 2 {
		p.wantFirst(p.pay(), n+1)
	}
}

// A call that the client's retry policy resends has the same key. The metadata that marks it as
// a resend changes nothing.
func chainClientRetries(b *grpcEnvironment) {
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
	}, note, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), grpclock.FreeOnFailure()))
	p = p.retrying(codes.Unavailable)
	first := p.wantFirst(p.pay(), 2)
	p.wantReplay(first, p.pay())
	if got := fmt.Sprint(attempts); got != "[[] [1] []]" {
		b.Errorf("attempts of the client: %s", got)
	}
}

// While the first call runs, the retry policy of a copy waits for the time of WithRetryAfter. Then
// the copy gets the first answer.
func chainClientWaits(b *grpcEnvironment) {
	const hint = 500 * time.Millisecond
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.events.await(b.T, core.Refused, 1)
		return nil
	}, core.WithRetryAfter(hint))
	p = p.retrying(codes.Aborted)
	before := time.Now()
	p.wantOneFirst(p.manyCopies(2))
	if took, refused := time.Since(before), b.events.count(core.Refused); took < hint || refused != 1 {
		b.Errorf("%d refusals in %v", refused, took)
	}
	b.wantRuns(1)
}

// The retry policy resends each call that ends with the code, except one with an unknown outcome.
func chainClientStops(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error { return refusedBy(codes.Unavailable) })
	p.pay()
	p = p.retrying(codes.FailedPrecondition)
	p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	if refused := b.events.count(core.Refused); refused != 1 {
		b.Errorf("%d refusals", refused)
	}
	b.wantRuns(1)
}

func chainFailOpen(b *grpcEnvironment) {
	defer func() {
		if recover() == nil {
			b.Error("no panic")
		}
	}()
	grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), core.WithFailOpen(true))
}

// An interceptor for unary calls is not called for streams.
func chainStreams(b *grpcEnvironment) {
	ran := 0
	s := listenGRPC(b.T, grpcService{r: route{handler: func(c call) {
		ran++
		if _, ok := grpclock.AttemptFromContext(c.Context()); ok {
			b.Error("a stream runs as an attempt")
		}
		c.Reply("done")
	}}}, serverStream, grpc.ChainUnaryInterceptor(grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey())))
	for range 2 {
		if got := s.send(b.Context(), request{idempotencyKeys: []string{theKey}}); !got.ok {
			b.Errorf("%+v", got)
		}
	}
	if ran != 2 {
		b.Errorf("%d have run", ran)
	}
}

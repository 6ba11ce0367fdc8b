package conformance

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// keptCodes are the codes that a copy of the call would get again.
var keptCodes = []codes.Code{
	codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition,
	codes.OutOfRange, codes.Unimplemented,
}

// unknownCodes are the codes that leave the outcome of a call unknown.
var unknownCodes = []codes.Code{
	codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Unavailable, codes.DataLoss, 17, 99,
}

func answerCodes(b *grpcEnvironment) { sendCodes(b, unknownCodes) }

func answerCodesFreed(b *grpcEnvironment) { sendCodes(b, nil, grpclock.FreeOnFailure()) }

// sendCodes sends two copies of a call for each code. unknown are the codes for which the second
// copy is refused.
func sendCodes(b *grpcEnvironment, unknown []codes.Code, opts ...grpclock.Option) {
	b.Helper()
	p := b.serve(func(_ context.Context, m *pb.SimpleRequest) error {
		return refusedBy(codes.Code(m.GetResponseStatus().GetCode()))
	}, opts...)
	for code := codes.OK; code <= codes.Unauthenticated+1; code++ {
		before := b.runs.Load()
		m := &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(code)}}
		first := p.send(b.Context(), code.String(), m)
		later := p.send(b.Context(), code.String(), m)
		if first.status != int(code) {
			b.Errorf("%v: answered with %d", code, first.status)
		}
		switch {
		case slices.Contains(keptCodes, code):
			b.wantRuns(before + 1)
			p.wantReplay(first, later)
		case slices.Contains(unknown, code):
			b.wantRuns(before + 1)
			p.wantRefused(later, refused(core.ErrInterrupted, 0))
		default:
			b.wantRuns(before + 2)
			if later.status != int(code) {
				b.Errorf("%v: the copy is answered with %d", code, later.status)
			}
		}
	}
}

func answerDecided(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, m *pb.SimpleRequest) error {
		attempt, _ := grpclock.AttemptFromContext(ctx)
		decision := core.Decision(m.GetResponseStatus().GetCode())
		attempt.Decide(decision)
		if decision == core.StoreAnswer {
			return refusedBy(codes.Unavailable)
		}
		return nil
	})
	call := func(d core.Decision) grpcAnswer {
		return p.send(b.Context(), fmt.Sprint("decision", d), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(d)}})
	}
	p.wantReplay(call(core.StoreAnswer), call(core.StoreAnswer))
	b.wantRuns(1)
	p.wantFirst(call(core.DropAnswer), 2)
	p.wantFirst(call(core.DropAnswer), 3)
	p.wantFirst(call(core.Uncertain), 4)
	p.wantRefused(call(core.Uncertain), refused(core.ErrInterrupted, 0))
	noEffect := p.wantFirst(call(core.NoEffect), 5)
	p.wantReplay(noEffect, call(core.NoEffect))
	b.wantRuns(5)
}

// A handler that panics or exits leaves the outcome unknown, or frees its key by an option.
func answerBroken(b *grpcEnvironment, end func()) {
	recovery := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
		ended := make(chan struct{})
		go func() { // a Goexit ends this goroutine, not that of the server
			defer close(ended)
			defer recovered(&err)
			err = refusedBy(codes.Internal)
			reply, err = next(ctx, m)
		}()
		<-ended
		return reply, err
	}
	breaking := func(context.Context, *pb.SimpleRequest) error {
		if b.runs.Load()%2 == 1 {
			end()
		}
		return nil
	}
	frees := b.serveBehind(breaking, recovery,
		grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), grpclock.FreeOnFailure()))
	if r := frees.send(b.Context(), "freed", paid); r.status != int(codes.Internal) {
		b.Errorf("%+v", r)
	}
	first := frees.wantFirst(frees.send(b.Context(), "freed", paid), 2)
	frees.wantReplay(first, frees.send(b.Context(), "freed", paid))

	p := b.serveBehind(breaking, recovery, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()))
	if r := p.pay(); r.status != int(codes.Internal) {
		b.Errorf("%+v", r)
	}
	p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	b.wantRuns(3)
}

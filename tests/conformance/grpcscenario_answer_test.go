package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/adapter/record"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// grpcAnswerScenarios test which answers are stored, and how they are replayed.
func grpcAnswerScenarios() []grpcScenario {
	return []grpcScenario{
		{"answer: a message with metadata", answerMetadata},
		{"answer: a status with details", answerDetails},
		{"answer: metadata that is never replayed, and metadata of outer interceptors", answerOfExchange},
		{"answer: compressed", answerCompressed},
		{"answer: a header that is sent early", answerEarlyHeader},
		{"answer: which status codes are stored", answerCodes},
		{"answer: the handler decides", answerDecided},
		{"answer: codes that leave the outcome unknown free the key, by an option", answerCodesFreed},
		{"answer: a panic", func(b *grpcEnvironment) { answerBroken(b, func() { panic("crash") }) }},
		{"answer: Goexit", func(b *grpcEnvironment) { answerBroken(b, runtime.Goexit) }},
		{"answer: as long as a record may be, and one byte more", answerLimit},
		{"answer: a record that cannot be read", answerUnreadable},
		{"answer: a message type that the server does not know", answerTypeGone},
		{"answer: no message", answerNothing},
		{"answer: a timeout interceptor inside", answerTimeout},
		{"answer: the lock of an inner interceptor is busy", answerLockBusy},
	}
}

func answerMetadata(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		return errors.Join(
			grpc.SetHeader(ctx, metadata.Pairs("x-b", "2", "x-a", "1", "x-b", "1", "x-sum-bin", "\x00\xff")),
			grpc.SetTrailer(ctx, metadata.Pairs("x-b", "3", "x-sum-bin", "\xff")),
			grpc.SetHeader(ctx, metadata.Pairs("x-b", "0")),
		)
	})
	first := p.wantFirst(p.pay(), 1)
	if got := fmt.Sprint(first.header["x-b"], first.header["x-sum-bin"], first.trailer["x-b"]); got != "[2 1 0] [\x00\xff] [3]" {
		b.Errorf("metadata %q", got)
	}
	p.wantReplay(first, p.pay())
	p.wantReplay(first, p.pay())
}

func answerDetails(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		s, err := status.New(codes.FailedPrecondition, "no funds").WithDetails(
			&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "FUNDS"}}},
			&pb.SimpleRequest{ResponseSize: 7})
		return errors.Join(s.Err(), err, grpc.SetTrailer(ctx, metadata.Pairs("x-b", "3")))
	})
	first := p.pay()
	if details := status.Convert(first.err).Details(); len(details) != 2 || first.trailer["x-b"] == nil {
		b.Errorf("%+v", first)
	}
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

func answerOfExchange(b *grpcEnvironment) {
	exchange := 0
	outside := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		exchange++
		_ = grpc.SetHeader(ctx, metadata.Pairs("x-request-id", fmt.Sprint(exchange), "x-exchange", fmt.Sprint(exchange)))
		return next(ctx, m)
	}
	p := b.serveBehind(func(ctx context.Context, _ *pb.SimpleRequest) error {
		return grpc.SetHeader(ctx, metadata.Pairs("set-cookie", "s=1", "date", "now", "traceparent", "1", "x-b", "1"))
	}, outside, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()))
	p.wantFirst(p.pay(), 1)
	r := p.pay()
	want := map[string]string{"x-request-id": "2", "x-exchange": "2", "x-b": "1", "idempotent-replayed": "true"}
	for name, value := range want {
		if !slices.Equal(r.header[name], []string{value}) {
			b.Errorf("%s is %q, not %q", name, r.header[name], value)
		}
	}
	if len(r.header) != len(want) {
		b.Errorf("header %q", r.raw)
	}
}

// Compression belongs to the exchange, below the interceptor.
func answerCompressed(b *grpcEnvironment) {
	p := b.serve(nil)
	ctx := metadata.AppendToOutgoingContext(b.Context(), "idempotency-key", theKey)
	first := p.wantFirst(p.call(ctx, paid, grpc.UseCompressor(gzip.Name)), 1)
	p.wantReplay(first, p.call(ctx, paid))
	p.wantReplay(first, p.call(ctx, paid, grpc.UseCompressor(gzip.Name)))
}

// A header may be sent before the commit. The message and the status are not.
func answerEarlyHeader(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		return grpc.SendHeader(ctx, metadata.Pairs("x-b", "1"))
	})
	first := p.wantFirst(p.pay(), 1)
	if first.header["x-b"] == nil {
		b.Errorf("the first answer has lost its header: %+v", first)
	}
	p.wantReplay(first, p.pay())
}

func answerLimit(b *grpcEnvironment) {
	length := len(record.EncodeReply(nil, record.Reply{
		Type: "grpc.testing.SimpleResponse", Message: []byte("\x12\x011"), // the username "1"
	}))
	p := b.serve(nil, core.WithMaxRecord(length))
	p.wantReplay(p.wantFirst(p.pay(), 1), p.pay())

	p = b.serve(nil, core.WithMaxRecord(length-1))
	ctx := b.Context()
	p.wantFirst(p.send(ctx, "long", paid), 2)
	for range 2 {
		p.wantRefused(p.send(ctx, "long", paid), refused(core.ErrUnreplayable, 0))
	}
	b.wantRuns(2)
}

// stored replaces the stored answer of a call.
func (b *grpcEnvironment) stored(key string, answer []byte) {
	b.Helper()
	attempt, err := b.locks.Begin(b.Context(), core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, key), nil)
	if err != nil {
		b.Fatalf("Begin: %v", err)
	}
	if err := attempt.Commit(b.Context(), answer); err != nil {
		b.Fatalf("Commit: %v", err)
	}
}

func answerUnreadable(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	whole := record.EncodeReply(nil, record.Reply{Type: "grpc.testing.SimpleResponse"})
	newer := append([]byte{2}, whole[1:len(whole)-4]...)
	newer = binary.BigEndian.AppendUint32(newer, crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	for name, answer := range map[string][]byte{
		"nothing": nil, "half": whole[:len(whole)/2], "newer": newer, "http": record.Encode(nil, record.Answer{Status: 200}),
	} {
		b.stored(name, answer)
		p.wantRefused(p.send(b.Context(), name, paid), refused(core.ErrUnreplayable, 0))
	}
	b.stored("whole", whole)
	if r := p.send(b.Context(), "whole", paid); !r.ok || !r.replayed() {
		b.Errorf("a whole one: %+v", r)
	}
	b.wantRuns(0)
}

func answerTypeGone(b *grpcEnvironment) {
	p := b.serve(nil, grpclock.WithoutFingerprint())
	for _, name := range []string{"grpc.testing.OlderResponse", "grpc.testing.Payload", "grpc.testing.TestService"} {
		b.stored(name, record.EncodeReply(nil, record.Reply{Type: name}))
		p.wantRefused(p.send(b.Context(), name, paid), refused(core.ErrUnreplayable, 0))
	}
	b.wantRuns(0)
}

// A nil of the message's type is sent as an empty message, and is replayed. A nil without a
// type completes the call without an answer.
func answerNothing(b *grpcEnvironment) {
	typed := true
	inside := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		b.runs.Add(1)
		if typed {
			return (*pb.SimpleResponse)(nil), nil
		}
		return nil, nil
	}
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()), inside)
	first := p.pay()
	if !first.ok {
		b.Errorf("%+v", first)
	}
	p.wantReplay(first, p.pay())
	typed = false
	p.send(b.Context(), "untyped", paid)
	p.wantRefused(p.send(b.Context(), "untyped", paid), refused(core.ErrUnreplayable, 0))
	b.wantRuns(2)
}

// The answer of an inner timeout interceptor is an answer. Its code leaves the outcome unknown,
// since the handler may still run.
func answerTimeout(b *grpcEnvironment) {
	running, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	timeout := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		go func() {
			defer close(ended)
			_, _ = next(ctx, m)
		}()
		suite.ReceiveAnywhere(b.T, "the handler runs", running)
		return nil, status.FromContextError(context.DeadlineExceeded).Err()
	}
	p := b.serveBehind(func(context.Context, *pb.SimpleRequest) error {
		close(running)
		suite.ReceiveAnywhere(b.T, "the handler may end", end)
		return nil
	}, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()), timeout)
	if r := p.pay(); r.status != int(codes.DeadlineExceeded) {
		b.Errorf("%+v", r)
	}
	p.wantRefused(p.pay(), refused(core.ErrInterrupted, 0))
	b.wantRuns(1)
	close(end)
	suite.ReceiveAnywhere(b.T, "the handler has returned", ended)
}

// A refusal of another interceptor of reqlock is not the method's answer, with any code.
func answerLockBusy(b *grpcEnvironment) {
	account := grpclock.Metadata("x-account")
	p := b.serveBehind(nil, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()),
		grpclock.UnaryServerInterceptor(b.locks, account))
	p.wantRefused(p.pay(), refused(core.ErrNoKey, 0)) // INVALID_ARGUMENT, which is stored if it is the method's
	b.take("ada")
	p.wantRefused(p.send(b.Context(), theKey, paid, "x-account", "ada"), refused(core.ErrBusy, defaultRetryAfter))
	b.free("ada")
	first := p.wantFirst(p.send(b.Context(), theKey, paid, "x-account", "ada"), 1)
	p.wantReplay(first, p.pay()) // needs no lock
	if strings.Contains(first.raw, "ada") {
		b.Errorf("the answer tells a key: %s", first.raw)
	}
}

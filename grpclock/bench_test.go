package grpclock_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// BenchmarkUnary shows what the interceptor costs over the bare handler, and
// over the lock alone, without the connection of a client.
func BenchmarkUnary(b *testing.B) {
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Transfer_FullMethodName}
	serve := func(b *testing.B, interceptor grpc.UnaryServerInterceptor) {
		b.Helper()
		m := transferOf("42")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := interceptor(b.Context(), m, info, handler); err != nil {
				b.Fatal(err)
			}
		}
	}
	field := grpclock.Field[*pb.TransferRequest]("account.id")
	others := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Settle_FullMethodName: field})

	b.Run("bare", func(b *testing.B) {
		serve(b, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(ctx, req)
		})
	})
	b.Run("skipped", func(b *testing.B) {
		serve(b, grpclock.UnaryServerInterceptor(lockbench.Locker(b, "127.0.0.1:1"), failing(core.ErrSkip)))
	})
	b.Run("skipped by method", func(b *testing.B) {
		serve(b, grpclock.UnaryServerInterceptor(lockbench.Locker(b, "127.0.0.1:1"), others))
	})
	lockbench.OnEachServer(b, "interceptor", func(b *testing.B, locks *core.Locker) {
		serve(b, grpclock.UnaryServerInterceptor(locks, field))
	})
	redis := redistest.Start(b).Addr()
	b.Run("redis/by method", func(b *testing.B) {
		listed := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Transfer_FullMethodName: field})
		serve(b, grpclock.UnaryServerInterceptor(lockbench.Locker(b, redis), listed))
	})
}

// BenchmarkKey shows what it costs to read the key.
func BenchmarkKey(b *testing.B) {
	for name, key := range map[string]grpclock.Key{
		"field":   grpclock.Field[*pb.TransferRequest]("account.id"),
		"message": grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() }),
	} {
		b.Run(name, func(b *testing.B) {
			call := grpclock.NewCall(b.Context(), "", transferOf("42"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := key.Read(call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// memoryStream is a stream without a connection; it receives one message.
type memoryStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *memoryStream) Context() context.Context { return s.ctx }
func (s *memoryStream) SendMsg(any) error        { return nil }

func (s *memoryStream) RecvMsg(m any) error {
	m.(*pb.TransferRequest).Account = &pb.Account{Id: "42"}
	return nil
}

// BenchmarkStream shows what the interceptor costs over the bare handler of a
// stream that receives one message and sends one.
func BenchmarkStream(b *testing.B) {
	handler := func(_ any, ss grpc.ServerStream) error {
		if err := ss.RecvMsg(&pb.TransferRequest{}); err != nil {
			return err
		}
		return ss.SendMsg(&pb.TransferReply{})
	}
	info := &grpc.StreamServerInfo{FullMethod: pb.Bank_Batch_FullMethodName}
	serve := func(b *testing.B, interceptor grpc.StreamServerInterceptor) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if err := interceptor(nil, &memoryStream{ctx: b.Context()}, info, handler); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bare", func(b *testing.B) {
		serve(b, func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, ss)
		})
	})
	b.Run("skipped", func(b *testing.B) {
		serve(b, grpclock.StreamServerInterceptor(lockbench.Locker(b, "127.0.0.1:1"), failing(core.ErrSkip)))
	})
	b.Run("redis/key at the beginning", func(b *testing.B) {
		serve(b, grpclock.StreamServerInterceptor(lockbench.Locker(b, redistest.Start(b).Addr()), grpclock.Literal("42")))
	})
	b.Run("redis/key in the message", func(b *testing.B) {
		serve(b, grpclock.StreamServerInterceptor(lockbench.Locker(b, redistest.Start(b).Addr()), accountOf))
	})
}

package connectlock_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// BenchmarkUnary shows what the interceptor costs over the bare handler, and over the lock alone,
// without the connection of a client.
func BenchmarkUnary(b *testing.B) {
	serve := func(b *testing.B, interceptors ...connect.Interceptor) {
		b.Helper()
		call := unary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }, interceptors...)
		req := transferOf("42")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := call(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	}
	field := connectlock.Field[*pb.TransferRequest]("account.id")

	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("skipped", func(b *testing.B) {
		serve(b, connectlock.Interceptor(lockbench.Locker(b, "127.0.0.1:1"), failing(core.ErrSkip)))
	})
	lockbench.OnEachServer(b, "interceptor", func(b *testing.B, locks *core.Locker) {
		serve(b, connectlock.Interceptor(locks, field))
	})
}

// BenchmarkStream shows what the interceptor costs over the bare handler of a stream that receives one
// message and sends one.
func BenchmarkStream(b *testing.B) {
	serve := func(b *testing.B, interceptors ...connect.Interceptor) {
		b.Helper()
		call := connect.StreamingHandlerFunc(func(_ context.Context, conn connect.StreamingHandlerConn) error {
			if err := conn.Receive(&pb.TransferRequest{}); err != nil {
				return err
			}
			return conn.Send(&pb.TransferReply{})
		})
		for _, interceptor := range interceptors {
			call = interceptor.WrapStreamingHandler(call)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := call(b.Context(), memoryConn{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	locker := func(b *testing.B) *core.Locker {
		b.Helper()
		return lockbench.Locker(b, redistest.Start(b).Addr())
	}
	b.Run("bare", func(b *testing.B) { serve(b) })
	b.Run("redis/key at the beginning", func(b *testing.B) { serve(b, connectlock.Interceptor(locker(b), literal)) })
	b.Run("redis/key in the message", func(b *testing.B) { serve(b, connectlock.Interceptor(locker(b), accountOf)) })
}

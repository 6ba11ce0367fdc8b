package protolock_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/lockbench"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/protolock"
)

// BenchmarkUnary shows what the interceptors of rules cost, without the connection of a client. That
// of grpclock shows what an interceptor in code costs.
func BenchmarkUnary(b *testing.B) {
	a := annotate(b, "", map[string]string{
		"Transfer": `lock { key { field: "account.id" } } idempotent { key { field: "payee.id" } optional: true }`,
	})
	rules := protolock.Must(protolock.New(a.descs()))
	serve := func(b *testing.B, interceptor grpc.UnaryServerInterceptor, method string) {
		b.Helper()
		handler := func(context.Context, any) (any, error) { return nil, nil }
		info, m := &grpc.UnaryServerInfo{FullMethod: a.method(method)}, transferOf("42")
		ctx := metadata.NewIncomingContext(b.Context(), metadata.Pairs("x-user", "ada"))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := interceptor(ctx, m, info, handler); err != nil {
				b.Fatal(err)
			}
		}
	}
	unused := func(b *testing.B) *core.Locker { b.Helper(); return lockbench.Locker(b, "127.0.0.1:1") }

	b.Run("no rule", func(b *testing.B) { serve(b, rules.UnaryServerInterceptor(unused(b)), "Settle") })
	b.Run("no optional key", func(b *testing.B) { serve(b, rules.IdempotentUnaryServerInterceptor(unused(b)), "Transfer") })
	b.Run("redis/lock", func(b *testing.B) {
		serve(b, rules.UnaryServerInterceptor(lockbench.Locker(b, redistest.Start(b).Addr())), "Transfer")
	})
}

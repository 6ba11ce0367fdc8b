package grpclock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/grpclock"
)

// The caller of a lease of an interceptor is the code that made the interceptor.
func TestCallerIsTheCodeThatMadeTheInterceptor(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*core.Locker) grpc.UnaryServerInterceptor{
		"unary": func(locks *core.Locker) grpc.UnaryServerInterceptor {
			return grpclock.UnaryServerInterceptor(locks, literal)
		},
		"idempotent": func(locks *core.Locker) grpc.UnaryServerInterceptor {
			return grpclock.IdempotentUnaryServerInterceptor(locks, literal, core.WithoutFingerprint())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = build(locks.Locker)(t.Context(), transferOf("42"), &grpc.UnaryServerInfo{FullMethod: "/a/b"}, func(context.Context, any) (any, error) {
				err := locks.Close(ended)
				if err == nil || !strings.Contains(err.Error(), ".TestCallerIsTheCodeThatMadeTheInterceptor.func") {
					t.Errorf("close: %v", err)
				}
				return transferOf("42"), nil
			})
		})
	}
}

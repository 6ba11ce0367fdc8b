package protolock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/protolock"
)

// The caller of a lease of an interceptor is the code that made the interceptor.
func TestCallerIsTheCodeThatMadeTheInterceptor(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{"Transfer": `lock { key { field: "account.id" } } idempotent { key { field: "account.id" } }`})
	rules := protolock.Must(protolock.New(a.descs()))
	for name, build := range map[string]func(*core.Locker) grpc.UnaryServerInterceptor{
		"unary": func(locks *core.Locker) grpc.UnaryServerInterceptor { return rules.UnaryServerInterceptor(locks) },
		"idempotent": func(locks *core.Locker) grpc.UnaryServerInterceptor {
			return rules.IdempotentUnaryServerInterceptor(locks)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t, core.WithCaller(true))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = build(locks.Locker)(t.Context(), transferOf("42"), &grpc.UnaryServerInfo{FullMethod: a.method("Transfer")}, func(context.Context, any) (any, error) {
				err := locks.Close(ended)
				if err == nil || !strings.Contains(err.Error(), ".TestCallerIsTheCodeThatMadeTheInterceptor.func") {
					t.Errorf("close: %v", err)
				}
				return transferOf("42"), nil
			})
		})
	}
}

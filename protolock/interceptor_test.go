package protolock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
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

// A call allocates as much by a rule as by code: views and keys are made at the start. A
// method without a rule costs nothing, and a call without its optional key only its grpclock.Call.
func TestRulesAllocateNoMoreThanCode(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
	if suite.Race {
		t.Skip("the race detector allocates")
	}
	locks := adaptertest.UnusedLocker(t)
	a := annotate(t, `ttl { seconds: 5 }`, map[string]string{
		"Transfer": `lock { name: "account" key { source: "account" } wait { seconds: 2 } } idempotent { key { field: "payee.id" } optional: true }`,
	})
	skip := core.KeyOf(func(*grpclock.Call) (string, error) { return "", core.ErrSkip }) // up to the lock, without it
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("account", skip)))
	byRule := rules.UnaryServerInterceptor(locks)
	byCode := grpclock.UnaryServerInterceptor(locks, skip.Named("account"))
	allocations := func(interceptor grpc.UnaryServerInterceptor, method string) float64 {
		info := &grpc.UnaryServerInfo{FullMethod: method}
		handler := func(context.Context, any) (any, error) { return nil, nil }
		ctx, message := t.Context(), transferOf("42")
		return testing.AllocsPerRun(100, func() { _, _ = interceptor(ctx, message, info, handler) })
	}
	if rule, code := allocations(byRule, a.method("Transfer")), allocations(byCode, pb.Bank_Transfer_FullMethodName); rule != code {
		t.Errorf("%v allocations by a rule, %v by code", rule, code)
	}
	if n := allocations(byRule, a.method("Settle")); n != 0 {
		t.Errorf("%v allocations without a rule", n)
	}
	if n := allocations(rules.IdempotentUnaryServerInterceptor(locks), a.method("Transfer")); n != 1 {
		t.Errorf("%v allocations without the optional key", n)
	}
}

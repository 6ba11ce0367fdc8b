package grpclock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A lock on all methods does not change the answer for an unknown method.
func TestUnknownMethod(t *testing.T) {
	t.Parallel()
	lost := grpclock.Metadata("x-account") // would be INVALID_ARGUMENT
	addr := listen(t, &bank{}, unary(adaptertest.UnusedLocker(t), lost), streams(adaptertest.UnusedLocker(t), lost))
	conn := dial(t, addr, plaintext)
	err := conn.Invoke(within(t), "/reqlock.bank.v1.Bank/Rob", &pb.BalanceRequest{}, &pb.BalanceReply{})
	wantCode(t, err, codes.Unimplemented)
}

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"unary, nil locker":  {func() { grpclock.UnaryServerInterceptor(nil, literal) }, "UnaryServerInterceptor needs a locker"},
		"unary, zero key":    {func() { grpclock.UnaryServerInterceptor(locks, grpclock.Key{}) }, "UnaryServerInterceptor needs a key"},
		"stream, nil locker": {func() { grpclock.StreamServerInterceptor(nil, literal) }, "StreamServerInterceptor needs a locker"},
		"stream, zero key":   {func() { grpclock.StreamServerInterceptor(locks, grpclock.Key{}) }, "StreamServerInterceptor needs a key"},
		"nil option":         {func() { grpclock.UnaryServerInterceptor(locks, literal, nil) }, "option is nil"},
		"foreign option": {
			func() { grpclock.UnaryServerInterceptor(locks, literal, adaptertest.ForeignOption()) },
			adaptertest.ForeignOptionText,
		},
		"bad setting":        {func() { grpclock.UnaryServerInterceptor(locks, literal, core.WithTTL(1)) }, "WithTTL"},
		"root setting":       {func() { grpclock.StreamServerInterceptor(locks, literal, core.WithPrefix("x")) }, "WithPrefix"},
		"nil error handler":  {func() { grpclock.WithErrorHandler(nil) }, "WithErrorHandler"},
		"Message":            {func() { grpclock.Message[*pb.TransferRequest](nil) }, "Message"},
		"Metadata":           {func() { grpclock.Metadata("") }, "Metadata"},
		"Metadata of bytes":  {func() { grpclock.Metadata("X-Account-Bin") }, "bytes"},
		"Literal":            {func() { grpclock.Literal("") }, "Literal"},
		"ContextValue":       {func() { grpclock.ContextValue(nil) }, "ContextValue"},
		"ContextValueAs key": {func() { grpclock.ContextValueAs(nil, func(s string) string { return s }) }, "ContextValueAs"},
		"ContextValueAs get": {func() { grpclock.ContextValueAs[string](1, nil) }, "ContextValueAs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
}

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

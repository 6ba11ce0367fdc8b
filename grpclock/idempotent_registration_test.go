package grpclock_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A lock refuses the options of idempotent calls, and an idempotent interceptor
// refuses several keys, and a key that several calls hold.
func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	with := func(opts ...core.Option) func() {
		return func() { grpclock.IdempotentUnaryServerInterceptor(locks, literal, opts...) }
	}
	stored := grpclock.WithStored(func(codes.Code) bool { return true })
	for name, test := range map[string]struct {
		register func()
		want     string
	}{
		"nil locker":   {func() { grpclock.IdempotentUnaryServerInterceptor(nil, literal) }, "IdempotentUnaryServerInterceptor needs a locker"},
		"zero key":     {func() { grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Key{}) }, "IdempotentUnaryServerInterceptor needs a key"},
		"several keys": {func() { grpclock.IdempotentUnaryServerInterceptor(locks, core.All(literal)) }, "IdempotentUnaryServerInterceptor has one key"},
		"shared": {func() {
			grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Transfer_FullMethodName: literal.Shared()}))
		}, "IdempotentUnaryServerInterceptor needs a key without Permits and Shared"},
		"fail open":      {with(core.WithFailOpen(true)), "WithFailOpen"},
		"foreign option": {with(adaptertest.ForeignOption()), adaptertest.ForeignOptionText},
		"fail open before": {func() {
			grpclock.IdempotentUnaryServerInterceptor(locks.With(core.WithFailOpen(true)), literal)
		}, "WithFailOpen"},
		"nil stored":        {func() { grpclock.WithStored(nil) }, "WithStored"},
		"nil uncertain":     {func() { grpclock.WithUnknown(nil) }, "WithUnknown"},
		"short retention":   {with(core.WithRetention(1)), "WithRetention"},
		"records of 0 byte": {with(core.WithMaxAnswer(0)), "WithMaxAnswer"},
		"a status":          {with(core.WithStored(func(int) bool { return true })), "write grpclock.WithStored, which chooses by codes"},
		"another request":   {with(core.WithFingerprint(func(int) ([]byte, error) { return nil, nil })), "WithFingerprint: a func(int)"},
		"stored, a lock":    {func() { grpclock.UnaryServerInterceptor(locks, literal, stored) }, "WithStored has no effect on UnaryServerInterceptor"},
		"stored, a stream":  {func() { grpclock.StreamServerInterceptor(locks, literal, stored) }, "WithStored has no effect on StreamServerInterceptor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
	with(core.WithFailOpen(true), core.WithFailOpen(false))() // the later option replaces the earlier one
}

package grpclock_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A lock refuses the options of idempotent calls, and an idempotent interceptor
// refuses Also.
func TestIdempotentRegistrationPanics(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	with := func(opts ...grpclock.Option) func() {
		return func() { grpclock.IdempotentUnaryServerInterceptor(locks, literal, opts...) }
	}
	tests := map[string]struct {
		register func()
		want     string
	}{
		"nil locker":     {func() { grpclock.IdempotentUnaryServerInterceptor(nil, literal) }, "IdempotentUnaryServerInterceptor needs a locker"},
		"nil key":        {func() { grpclock.IdempotentUnaryServerInterceptor[string](locks, nil) }, "IdempotentUnaryServerInterceptor needs a key function"},
		"Also":           {with(grpclock.Also(literal)), "put a UnaryServerInterceptor behind it"},
		"fail open":      {with(core.WithFailOpen(true)), "WithFailOpen"},
		"foreign option": {with(adaptertest.ForeignOption{}), "option of another adapter"},
		"fail open before": {func() {
			grpclock.IdempotentUnaryServerInterceptor(locks.With(core.WithFailOpen(true)), literal)
		}, "WithFailOpen"},
		"an empty name":     {func() { grpclock.WithOptionalKey("a", "") }, "WithOptionalKey"},
		"nil fingerprint":   {func() { grpclock.WithFingerprint(nil) }, "WithFingerprint"},
		"nil stored":        {func() { grpclock.WithStored(nil) }, "WithStored"},
		"nil uncertain":     {func() { grpclock.WithUnknown(nil) }, "WithUnknown"},
		"short retention":   {with(core.WithRetention(1)), "WithRetention"},
		"records of 0 byte": {with(core.WithMaxAnswer(0)), "WithMaxAnswer"},
	}
	for name, opt := range map[string]grpclock.Option{
		"WithOptionalKey":    grpclock.WithOptionalKey(),
		"WithFingerprint":    grpclock.WithFingerprint(func(*grpclock.Call) ([]byte, error) { return nil, nil }),
		"WithoutFingerprint": grpclock.WithoutFingerprint(),
		"WithStored":         grpclock.WithStored(func(codes.Code) bool { return true }),
		"WithUnknown":        grpclock.WithUnknown(func(grpclock.Failure) bool { return true }),
		"FreeOnFailure":      grpclock.FreeOnFailure(),
	} {
		want := name + " is an option of IdempotentUnaryServerInterceptor"
		tests[name+" for a lock"] = struct {
			register func()
			want     string
		}{func() { grpclock.UnaryServerInterceptor(locks, literal, opt) }, "UnaryServerInterceptor: " + want}
		tests[name+" for a stream"] = struct {
			register func()
			want     string
		}{func() { grpclock.StreamServerInterceptor(locks, literal, opt) }, "StreamServerInterceptor: " + want}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.WantPanic(t, test.register, test.want)
		})
	}
	with(core.WithFailOpen(true), core.WithFailOpen(false))() // the later option replaces the earlier one
}

package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/echolock"
	"github.com/reqlock/reqlock/ginlock"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/nethttplock"
)

// Idempotent refuses a Locker whose locks are shared, as it refuses the options that make one.
func TestIdempotentRefusesSharedLocks(t *testing.T) {
	t.Parallel()
	for _, option := range []core.Option{core.WithPermits(2), core.WithShared(true)} {
		locks := adaptertest.UnusedLocker(t).With(option)
		const http = ": Idempotent needs a locker without WithPermits and WithShared: a request has its key alone"
		for want, register := range map[string]func(){
			"reqlock: nethttplock" + http: func() { nethttplock.Idempotent(locks, nethttplock.Literal("k")) },
			"reqlock: ginlock" + http:     func() { ginlock.Idempotent(locks, ginlock.Literal("k")) },
			"reqlock: echolock" + http:    func() { echolock.Idempotent(locks, echolock.Literal("k")) },
			"reqlock: grpclock: IdempotentUnaryServerInterceptor needs a locker without WithPermits and WithShared": func() {
				grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal("k"))
			},
		} {
			adaptertest.WantPanic(t, register, want)
		}
	}
}

// A middleware refuses an option of core that has no effect on its requests.
func TestOptionWithoutEffectIsRefused(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	echoKey := echolock.Literal("k")
	type register func(option core.Option)
	mere := map[string]register{
		"nethttplock: %s has no effect on Middleware": func(o core.Option) { nethttplock.Middleware(locks, nethttplock.Literal("k"), o) },
		"ginlock: %s has no effect on Middleware":     func(o core.Option) { ginlock.Middleware(locks, ginlock.Literal("k"), o) },
		"echolock: %s has no effect on Middleware":    func(o core.Option) { echolock.Middleware(locks, echoKey, o) },
		"echolock: %s has no effect on Middleware ": func(o core.Option) {
			echolock.MiddlewareWithConfig(echolock.Config{Locker: locks, Key: echoKey, Options: []core.Option{o}})
		},
		"grpclock: %s has no effect on ServerOptions": func(o core.Option) { grpclock.ServerOptions(locks, grpclock.Literal("k"), o) },
		"grpclock: %s has no effect on StreamServerInterceptor": func(o core.Option) {
			grpclock.StreamServerInterceptor(locks, grpclock.Literal("k"), o)
		},
	}
	once := map[string]register{
		"nethttplock: %s has no effect on Idempotent": func(o core.Option) { nethttplock.Idempotent(locks, nethttplock.Literal("k"), o) },
		"ginlock: %s has no effect on Idempotent":     func(o core.Option) { ginlock.Idempotent(locks, ginlock.Literal("k"), o) },
		"echolock: %s has no effect on Idempotent":    func(o core.Option) { echolock.Idempotent(locks, echoKey, o) },
		"echolock: %s has no effect on Idempotent ": func(o core.Option) {
			echolock.IdempotentWithConfig(echolock.IdempotentConfig{Locker: locks, Key: echoKey, Options: []core.Option{o}})
		},
		"grpclock: %s has no effect on IdempotentUnaryServerInterceptor": func(o core.Option) {
			grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Literal("k"), o)
		},
	}
	for name, test := range map[string]struct {
		option            core.Option
		refuses, accepted map[string]register
	}{
		"WithMinHold":     {core.WithMinHold(time.Minute), once, mere},
		"WithPermits":     {core.WithPermits(2), once, mere},
		"WithShared":      {core.WithShared(true), once, mere},
		"WithRetention":   {core.WithRetention(time.Minute), mere, once},
		"WithInterrupted": {core.WithInterrupted(core.Rerun), mere, once},
		"WithMaxRecord":   {core.WithMaxRecord(1), mere, once},
	} {
		for text, register := range test.refuses {
			want := "reqlock: " + strings.TrimSpace(strings.Replace(text, "%s", name, 1))
			adaptertest.WantPanic(t, func() { register(test.option) }, want)
		}
		for text, register := range test.accepted {
			if panicked := adaptertest.PanicText(func() { register(test.option) }); panicked != "" {
				t.Errorf("%s: %s: %s", name, text, panicked)
			}
		}
		locks.With(test.option) // a view may be of both
	}
	for text, register := range once {
		for _, off := range []core.Option{core.WithMinHold(0), core.WithShared(false)} {
			if panicked := adaptertest.PanicText(func() { register(off) }); panicked != "" {
				t.Errorf("%s: %s", text, panicked)
			}
		}
	}
	if _, err := (echolock.Config{Locker: locks, Key: echoKey, Options: []core.Option{core.WithMaxRecord(1)}}).ToMiddleware(); err == nil {
		t.Error("ToMiddleware returns no error")
	}
}

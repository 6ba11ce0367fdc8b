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
	for text, register := range once { // 0 switches it off
		if panicked := adaptertest.PanicText(func() { register(core.WithMinHold(0)) }); panicked != "" {
			t.Errorf("%s: %s", text, panicked)
		}
	}
	if _, err := (echolock.Config{Locker: locks, Key: echoKey, Options: []core.Option{core.WithMaxRecord(1)}}).ToMiddleware(); err == nil {
		t.Error("ToMiddleware returns no error")
	}
}

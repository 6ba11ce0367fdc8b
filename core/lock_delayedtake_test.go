package core_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The network delays the first send of a take until the lease of the second one was released, and
// nobody reads its reply. The key must not stay taken until the TTL ends.
func TestTakeThatArrivesAfterTheReleaseIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]core.Option{
		"alone": core.WithShared(false), "one permit": core.WithPermits(1), "permits": core.WithPermits(2), "shared": core.WithShared(true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			direct := server.Client(t)
			locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(4*time.Second)).With(option)
			warm, err := locks.TryLock(t.Context(), "k") // loads the scripts
			noError(t, err)
			noError(t, warm.Release(t.Context()))
			var delayed []any
			drop, _ := proxy.HoldCommand(func(command []string) bool {
				if !slices.ContainsFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "reqlock:k") }) {
					return false
				}
				for _, arg := range command {
					delayed = append(delayed, arg)
				}
				return true
			})
			defer drop()
			lease, err := locks.TryLock(t.Context(), "k")
			noError(t, err)
			noError(t, lease.Release(t.Context()))
			var taken *redis.IntCmd
			_, err = direct.TxPipelined(t.Context(), func(p redis.Pipeliner) error { // before the product gives it back
				p.Do(t.Context(), delayed...)
				taken = p.Exists(t.Context(), "reqlock:k")
				return nil
			})
			if noError(t, err); taken.Val() != 1 {
				t.Fatal("the take has not arrived")
			}
			suite.Eventually(t, "the key is free", func() bool {
				return direct.Exists(t.Context(), "reqlock:k").Val() == 0
			})
		})
	}
}

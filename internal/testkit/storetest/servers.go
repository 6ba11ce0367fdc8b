package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// LongReads keeps the client from ending a command by itself. What a test leaves
// behind then ends with its connection.
func LongReads(o *redis.Options) { o.ReadTimeout = LongBound }

// Deadlines makes a client one with which callers may lead.
func Deadlines(o *redis.Options) { o.ContextTimeoutEnabled = true }

// SlowClusterReads keeps the client from ending a command by itself.
func SlowClusterReads(o *redis.ClusterOptions) { o.ReadTimeout = LongBound }

// ShortReads makes left-behind commands end soon, so that the test does.
func ShortReads(o *redis.Options) { o.ReadTimeout = time.Second }

// ClusterRights are for servers that are no cluster, where their client takes them
// for one.
func ClusterRights() []string { return strings.Fields(redistest.ClusterRights) }

// OnEachServer runs the test on a real server of each kind, except those that are left out,
// and on the embedded server, in parallel. Where they differ, the real one is right. The
// servers belong to the test.
func OnEachServer(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient), except ...redistest.Kind) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		if !slices.Contains(except, kind) {
			t.Run(kind.String(), func(t *testing.T) {
				t.Parallel()
				test(t, kind.Start(t).Client(t))
			})
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, rdb)
	})
}

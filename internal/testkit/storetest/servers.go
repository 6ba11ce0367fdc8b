package storetest

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// LongReads makes the read timeout of a client so long that it does not end a command. A command
// in flight ends with its connection.
func LongReads(o *redis.Options) { o.ReadTimeout = LongBound }

// Deadlines makes a client respect the deadlines of contexts. Inline commands need that.
func Deadlines(o *redis.Options) { o.ContextTimeoutEnabled = true }

// SlowClusterReads is LongReads for the client of a cluster.
func SlowClusterReads(o *redis.ClusterOptions) { o.ReadTimeout = LongBound }

// ShortReads makes commands in flight end soon after the test.
func ShortReads(o *redis.Options) { o.ReadTimeout = time.Second }

// BehindProxy starts a server behind a proxy. It returns a client that has connected through the
// proxy and that has short reads, the proxy, and a client that connects to the server without
// the proxy.
func BehindProxy(t *testing.T, configure ...func(*redis.Options)) (rdb *redis.Client, proxy *redistest.Proxy, direct *redis.Client) {
	t.Helper()
	server := redistest.Reuse(t)
	proxy = redistest.NewProxy(t, server.Addr())
	rdb = proxy.Client(t, append([]func(*redis.Options){ShortReads}, configure...)...)
	suite.Eventually(t, "the client has connected", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	return rdb, proxy, server.Client(t)
}

// ClusterRights returns the rights that a client of a cluster needs, for a server without cluster
// mode.
func ClusterRights() []string { return strings.Fields(redistest.ClusterRights) }

// OnEachServer runs the test on a real server of each kind, except those that are left out,
// and on the embedded server, in parallel. Where they differ, the real one is right. The fast
// tier runs it on a single server only: a real one if redis-server is installed, otherwise the
// embedded one. The servers belong to the test.
func OnEachServer(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient), except ...redistest.Kind) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		if !slices.Contains(except, kind) {
			t.Run(kind.String(), func(t *testing.T) {
				t.Parallel()
				kind.SkipRepeats(t)
				test(t, kind.Start(t).Client(t))
			})
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		if redistest.IsInstalled() {
			suite.Full(t, "repeats the test on the embedded server")
		}
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, rdb)
	})
}

// Embedded returns a client of an embedded Redis without a network, for a bubble of
// testing/synctest. The hook gets each command first, also those of scripts. It returns
// whether it has answered the command. A hook that blocks holds the command.
//
// All goroutines of the bubble wait before its time advances. So by then everything has happened
// that a held command does not prevent.
func Embedded(tb testing.TB, hook server.Hook) *redis.Client {
	tb.Helper()
	embedded := miniredis.NewMiniRedis()
	tb.Cleanup(embedded.Close)
	rdb := redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := embedded.Dial() // the first call starts the server
			if err == nil {
				embedded.Server().SetPreHook(hook)
			}
			return conn, err
		},
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 1000, // a client that waits for a connection uses a timer that others share
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestErrorsNameABusyPool(t *testing.T) {
	t.Parallel()
	const inUse = "all 2 connections in the pool"
	for name, test := range map[string]struct {
		configure func(*redis.Options)
		want      string
	}{
		"no connection before the command timeout": {func(o *redis.Options) { o.PoolTimeout = time.Minute }, inUse},
		"the caller sends its own commands":        {deadlines, inUse},
		"no connection before the pool's timeout":  {func(o *redis.Options) { o.PoolTimeout = 10 * time.Millisecond }, "connection pool timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t, func(o *redis.Options) { o.PoolSize = 2 }, test.configure)
			wantBusyPool(t, rdb, rdb, test.want)
		})
	}
}

// One master of a cluster has a busy pool.
func testErrorsNameABusyPoolInCluster(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.PoolSize = 2 })
	master, err := rdb.MasterForKey(t.Context(), "reqlock:k")
	noError(t, err)
	wantBusyPool(t, rdb, master, "all 2 connections in the pool")
}

// wantBusyPool lets the program use both connections in the pool of the server
// that has the lock. It fails the test unless the error of a lock and its event have the text, and
// Check says what to do.
func wantBusyPool(t *testing.T, rdb redis.UniversalClient, server *redis.Client, want string) {
	t.Helper()
	locks, events := observed(t, rdb, core.WithCommandTimeout(500*time.Millisecond))
	release(t, lock(t, locks, "k")) // then the next caller may send its own commands
	for range 2 {
		conn := server.Conn()
		defer func() { _ = conn.Close() }()
		noError(t, conn.Process(t.Context(), ownCommand{redis.NewStatusCmd(t.Context(), "ping")}))
	}
	suite.Eventually(t, "both connections are in use", func() bool {
		return server.PoolStats().TotalConns == 2 && server.PoolStats().IdleConns == 0
	})
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	if refused := events.of(core.Refused); len(refused) != 1 || refused[0].Err.Error() != err.Error() || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, events %v, want %q", err, refused, want)
	}
	wantFinding(t, locks.Check(t.Context()), "pool", "a client of its own", "PoolSize")
}

// An ownCommand goes through the client that it was given to, also if the servers of the tests
// have users with few rights: see redistest.
type ownCommand struct{ *redis.StatusCmd }

// NoRetry returns true, as for the commands of reqlock.
func (ownCommand) NoRetry() bool { return true }

package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// testFailFast is after how long an outage the Lockers of these tests refuse new callers.
const testFailFast = 700 * time.Millisecond

// testTimeout is the command timeout of these tests. Commands are slow while other tests load
// the machine.
const testTimeout = time.Second

// outageOptions are the options of a Locker whose new callers are refused soon.
func outageOptions(more ...core.Option) []core.Option {
	return append([]core.Option{core.WithFailFast(testFailFast), core.WithCommandTimeout(testTimeout)}, more...)
}

// shortReads ends an abandoned command soon.
func shortReads(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond }

// refusesAtOnce reports whether a new caller that may wait for long is refused at once
// because of an outage.
func refusesAtOnce(t *testing.T, locks *core.Locker, key string) bool {
	t.Helper()
	lease, err := locks.With(core.WithWait(testTimeout/4)).Lock(t.Context(), key)
	if err == nil {
		release(t, lease)
		return false
	}
	wantError(t, err, core.ErrUnavailable)
	if !strings.Contains(err.Error(), "no command was served for") {
		return false
	}
	begun := time.Now()
	wantError(t, errorOf(locks.With(core.WithWait(time.Minute)).Lock(t.Context(), key)), core.ErrUnavailable)
	if took := time.Since(begun); took > 30*time.Second { // half of the wait, for a busy machine
		t.Errorf("refused after %v", took)
	}
	_, err = locks.TryLock(t.Context(), key)
	wantError(t, err, core.ErrUnavailable)
	refusal, _ := core.RefusalOf(err)
	if refusal.Code != "unavailable" || refusal.RetryAfter != time.Second {
		t.Errorf("the refusal is %+v", refusal)
	}
	return true
}

// queueWaiter makes another process hold a key, and a caller wait for it. It returns the lease of
// the holder, and a channel that receives the result of the waiter, which is in the queue.
func queueWaiter(t *testing.T, locks *core.Locker, master *redistest.Server, key string) (held *core.Lease, waiter <-chan error) {
	t.Helper()
	// On a busy machine the lease must not be lost before the outage.
	held = lock(t, newLocker(t, master.Client(t, shortReads), core.WithTTL(5*time.Second)), key)
	waiter = start(func() error {
		lease, err := locks.Lock(t.Context(), key)
		return errors.Join(err, lease.Release(context.Background()))
	})
	admin := master.Client(t)
	suite.Eventually(t, "the waiter is in the queue", func() bool {
		return admin.LLen(t.Context(), "{reqlock:"+key+"}:q").Val() == 1
	})
	return held, waiter
}

func TestOutageRefusesNewCallersAtOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		begin, end func(*redistest.Server)
		want       string // in the error
	}{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart, "connection refused"},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			locks := newLocker(t, server.Client(t, shortReads), outageOptions()...)
			held, waiter := queueWaiter(t, locks, server, "waited for")
			fault.begin(server)
			suite.Eventually(t, "new callers are refused at once", func() bool { return refusesAtOnce(t, locks, "new") })
			if !refusesAtOnce(t, locks, "waited for") {
				t.Error("a new caller joined the queue of the waiter")
			}
			suite.Eventually(t, "the error says why", func() bool {
				_, err := locks.TryLock(t.Context(), "new")
				return strings.Contains(err.Error(), fault.want)
			})
			if len(waiter) != 0 {
				t.Fatalf("the waiter left: %v", <-waiter)
			}
			fault.end(server)
			suite.Eventually(t, "new callers are served", func() bool {
				lease, err := locks.TryLock(t.Context(), "new")
				return err == nil && lease.Release(t.Context()) == nil
			})
			_ = held.Release(t.Context()) // the lease may be lost
			noError(t, suite.Receive(t, "the waiter returns", waiter))
		})
	}
}

func TestOutageOfAMajority(t *testing.T) {
	suite.Full(t, "waits for the end of an outage")
	t.Parallel()
	servers := startServers(t, 3)
	var clients []redis.UniversalClient
	for _, server := range servers {
		clients = append(clients, server.Client(t, shortReads))
	}
	locks := newQuorum(t, clients, core.WithFailFast(testFailFast), core.WithCommandTimeout(testTimeout))
	servers[0].Pause()
	for begun := time.Now(); time.Since(begun) < 3*testFailFast; {
		lease, err := locks.TryLock(t.Context(), "k")
		if err != nil {
			t.Fatalf("a majority serves: %v", err)
		}
		release(t, lease)
		time.Sleep(10 * time.Millisecond)
	}
	servers[1].Pause()
	suite.Eventually(t, "new callers are refused at once", func() bool { return refusesAtOnce(t, locks, "new") })
	_, err := locks.TryLock(t.Context(), "new")
	if !strings.Contains(err.Error(), "no majority: 2 of 3 servers failed") {
		t.Errorf("got %v", err)
	}
	servers[0].Resume()
	suite.Eventually(t, "new callers are served", func() bool {
		lease, err := locks.TryLock(t.Context(), "new")
		return err == nil && lease.Release(t.Context()) == nil
	})
	servers[1].Resume()
}

func TestErrorsNameABusyPool(t *testing.T) {
	t.Parallel()
	const inUse = "all 2 connections in the pool"
	for name, test := range map[string]struct {
		configure func(*redis.Options)
		want      string
	}{
		"no connection before the command timeout": {func(o *redis.Options) { o.PoolTimeout = time.Minute }, inUse},
		"the caller sends its own commands":        {deadlines, inUse},
		"no connection before the pool's timeout":  {func(o *redis.Options) { o.PoolTimeout = 200 * time.Millisecond }, "connection pool timeout"},
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
	locks, events := observed(t, rdb, core.WithCommandTimeout(time.Second))
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

// No probe has noticed that the server is back. A caller that would run without the lock tries to lock first.
func TestFailOpenLocksOnceTheServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := locktest.New(t, core.WithFailFast(time.Second))
		locks.Down()
		wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrUnavailable)
		time.Sleep(1500 * time.Millisecond)
		if err := errorOf(locks.TryLock(t.Context(), "k")); !strings.Contains(err.Error(), "no command was served for") {
			t.Errorf("not refused at once: %v", err)
		}
		locks.Up()
		noError(t, locks.With(core.WithFailOpen(true)).Do(t.Context(), "k", func(ctx context.Context) error {
			if _, locked := core.LeaseFromContext(ctx); !locked {
				return errors.New("it ran without the lock")
			}
			return nil
		}))
	})
}

package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
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

// tryPause is the pause between two tries of a loop.
const tryPause = 10 * time.Millisecond

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
	outcome, _ := core.OutcomeOf(err)
	if outcome.Code != "unavailable" || outcome.RetryAfter != time.Second {
		t.Errorf("the outcome is %+v", outcome)
	}
	return true
}

// queueWaiter makes another process hold a key, and a caller wait for it. It returns the lease of
// the holder, and a channel that receives the result of the waiter, which is in the queue.
func queueWaiter(t *testing.T, locks *core.Locker, master *redistest.Server, key string) (held *core.Lease, waiter chan error) {
	t.Helper()
	// On a busy machine the lease must not be lost before the outage.
	held = lock(t, newLocker(t, master.Client(t, shortReads), core.WithTTL(5*time.Second)), key)
	waiter = make(chan error, 1)
	go func() {
		lease, err := locks.Lock(t.Context(), key)
		waiter <- errors.Join(err, lease.Release(context.Background()))
	}()
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

// A refused connection is reported as such, also by the first callers.
func TestRefusedConnectionIsReported(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks := core.Must(core.New(server.Client(t), core.WithCommandTimeout(time.Second), core.WithWait(2*time.Second)))
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	server.Kill()
	for range 2 {
		_, err := locks.TryLock(t.Context(), "k")
		wantError(t, err, core.ErrUnavailable)
		if !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "no reply") {
			t.Errorf("TryLock: %v", err)
		}
		_, err = locks.Lock(t.Context(), "k")
		wantError(t, err, core.ErrUnavailable)
		if !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "no reply") {
			t.Errorf("Lock: %v", err)
		}
	}
}

func TestFailOpenRunsAfterItsOwnCommandInAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	locks := newLocker(t, proxy.Client(t, shortReads), outageOptions()...)
	release(t, lock(t, locks, "k"))
	proxy.Refuse(true)
	suite.Eventually(t, "new callers are refused at once", func() bool { return refusesAtOnce(t, locks, "new") })
	open := locks.With(core.WithFailOpen(true), core.WithWait(time.Minute))
	ran := false
	if err := open.Do(t.Context(), "k", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("ran: %v, %v", ran, err)
	}
	// The server is back, and no probe may have noticed: the caller locks.
	proxy.Refuse(false)
	err := open.Do(t.Context(), "k", func(ctx context.Context) error {
		if _, locked := core.FromContext(ctx); !locked {
			return errors.New("it ran without the lock")
		}
		return nil
	})
	noError(t, err)
}

// A dead master of a cluster affects no key of the others.
func TestOutageOfOneMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = 500 * time.Millisecond })
	locks := newLocker(t, rdb, core.WithFailFast(100*time.Millisecond), core.WithCommandTimeout(testTimeout))
	dead := cluster.Masters()[0]
	keys := make(map[bool][]string) // by whether the dead master has them
	for i := 0; len(keys[true]) < 2 || len(keys[false]) == 0; i++ {
		key := string(rune('a' + i))
		master, err := rdb.MasterForKey(t.Context(), "reqlock:"+key)
		noError(t, err)
		died := master.Options().Addr == dead.Addr()
		keys[died] = append(keys[died], key)
		release(t, lock(t, locks, key))
	}
	waitedFor, another, ofOther := keys[true][0], keys[true][1], keys[false][0]
	_, waiter := queueWaiter(t, locks, dead, waitedFor)
	dead.Pause()
	suite.Eventually(t, "new callers of its keys are refused at once", suite.Every(tryPause, func() bool {
		lease, err := locks.TryLock(t.Context(), ofOther)
		if err != nil {
			t.Fatalf("a key of another master: %v", err)
		}
		release(t, lease)
		return refusesAtOnce(t, locks, another)
	}))
	cluster.AwaitFailover(dead)
	noError(t, suite.Receive(t, "the waiter returns", waiter))
	suite.Eventually(t, "the keys of the dead master are served", func() bool {
		lease, err := locks.TryLock(t.Context(), another)
		return err == nil && lease.Release(t.Context()) == nil
	})
	dead.Resume()
}

func TestOutageOfAMajority(t *testing.T) {
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
		time.Sleep(tryPause)
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

// A waiter keeps its place in a failover that takes longer than the time of WithFailFast.
func TestWaiterKeepsItsPlaceInAFailover(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinel(t)
	rdb := sentinels.Client(t, func(o *redis.FailoverOptions) { o.ReadTimeout = 500 * time.Millisecond })
	locks := newLocker(t, rdb, core.WithFailFast(100*time.Millisecond), core.WithCommandTimeout(testTimeout))
	master := sentinels.Master()
	_, waiter := queueWaiter(t, locks, master, "k") // the lease ends with its TTL, since its client knows one server
	master.Kill()
	suite.Eventually(t, "new callers are refused at once", func() bool { return refusesAtOnce(t, locks, "new") || len(waiter) > 0 })
	sentinels.AwaitFailover(master)
	noError(t, suite.Receive(t, "the waiter returns", waiter))
	suite.Eventually(t, "new callers are served", func() bool {
		lease, err := locks.TryLock(t.Context(), "new")
		return err == nil && lease.Release(t.Context()) == nil
	})
}

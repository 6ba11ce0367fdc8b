package lock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/wire"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A deployment is a Redis that the locks run on.
type deployment interface {
	Addrs() []string
	Used(ctx context.Context) (redisserver.Usage, error)
}

// onEach runs a test for each kind on the servers that it is made for: one server and a
// cluster, a master with a replica, or three servers of a quorum. It skips the test if
// redis-server is not installed.
func onEach(t *testing.T, test func(t *testing.T, on deployment, kind Kind)) {
	t.Helper()
	t.Parallel() // a quorum waits until its servers have run for a while
	server, nodes := redisserver.Start(t), redisserver.StartNodes(t, 3)
	cluster, replicated := redisserver.StartCluster(t, 3), redisserver.StartReplicated(t, 1)
	if err := nodes.AwaitAge(t.Context(), TTL); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds() {
		switch kind.Place {
		case Anywhere:
			t.Run(string(kind.Name), func(t *testing.T) { test(t, server, kind) })
			t.Run(string(kind.Name)+" on a cluster", func(t *testing.T) { test(t, cluster, kind) })
		case OnServer:
			t.Run(string(kind.Name), func(t *testing.T) { test(t, server, kind) })
		case OnReplica:
			t.Run(string(kind.Name), func(t *testing.T) { test(t, replicated, kind) })
		case OnQuorum:
			t.Run(string(kind.Name), func(t *testing.T) { test(t, nodes, kind) })
		}
	}
}

// open opens a lock, and closes it at the end of the test.
func open(t *testing.T, on deployment, kind Kind, commands *wire.Counter) Locker {
	t.Helper()
	locks, err := kind.Open(Config{Addrs: on.Addrs(), Commands: commands})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// Each lock excludes: many goroutines count without any other protection.
func TestKindsExclude(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment, kind Kind) {
		if kind.Module == "github.com/redis/rueidis" && len(on.Addrs()) > 1 {
			t.Skip("it can leave waiters behind on a cluster, where no suite has any")
		}
		if kind.Name == RueidislockNoLoop {
			t.Skip("it can leave waiters behind, so only suites without a line and bursts have it")
		}
		locks := open(t, on, kind, new(wire.Counter))
		var (
			workers sync.WaitGroup
			count   int
		)
		for range 8 {
			workers.Go(func() {
				for range 5 {
					held, err := locks.Lock(t.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					count++
					if err := held.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		if count != 40 {
			t.Errorf("counted to %d, want 40", count)
		}
	})
}

// A wait for a held lock ends with its context.
func TestKindsWaitUntilTheirContextEnds(t *testing.T) {
	onEach(t, func(t *testing.T, on deployment, kind Kind) {
		locks := open(t, on, kind, new(wire.Counter))
		held, err := locks.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := locks.Lock(ctx, "k"); err == nil || ctx.Err() == nil {
			t.Errorf("the second Lock returned %v, its context is %v", err, ctx.Err())
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The counted commands are those that the servers report, without the commands of scripts.
// A redirection by a node of the cluster would add one.
func TestCommandsAreCounted(t *testing.T) {
	const turns, keys = 20, 10 // enough for each node of the cluster
	onEach(t, func(t *testing.T, on deployment, kind Kind) {
		if kind.Name == Channel {
			t.Skip("it sends none")
		}
		if kind.Name == ReqlockQuorum {
			t.Skip("it still sends some when a turn is over, and connects when it likes")
		}
		commands := new(wire.Counter)
		locks := open(t, on, kind, commands)
		turn := func(i int) {
			held, err := locks.Lock(t.Context(), strconv.Itoa(i%keys))
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range keys { // connections and scripts
			turn(i)
		}
		before, beforeErr := on.Used(t.Context())
		sent := commands.Commands()
		for i := range turns {
			turn(i)
		}
		after, afterErr := on.Used(t.Context())
		if err := errors.Join(beforeErr, afterErr); err != nil {
			t.Fatal(err)
		}
		calls := after.Since(before).Calls
		each := 2 // the lock and its release
		switch kind.Place {
		case Anywhere, OnServer:
		case OnReplica:
			each++
		case OnQuorum:
			each *= len(on.Addrs())
		}
		want := calls["evalsha"] + calls["wait"]
		if want < int64(each*turns) { // the lock is a plain SET, or its release a plain ZREM
			want += calls["set"] + calls["zrem"]
		}
		if got := commands.Commands() - sent; got != want || got != int64(each*turns) {
			t.Errorf("%d commands were sent in %d turns; the server has %v", got, turns, calls)
		}
	})
}

func TestUnknownNameIsAnError(t *testing.T) {
	if _, err := Open("unknown", Config{}); err == nil {
		t.Error("an unknown lock was opened")
	}
}

// The bare commands fail on a server without a replica.
func TestBareLockIsNotTakenWithoutReplica(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	locks, err := Open(RawReplica, Config{Addrs: server.Addrs(), Commands: new(wire.Counter)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close() }()
	if _, err := locks.Lock(t.Context(), "k"); !errors.Is(err, errNotAcknowledged) {
		t.Errorf("without a replica the lock was taken with the error %v", err)
	}
}

package inspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// newLocker returns a Locker, as another process has one, that is closed at the end of the test.
func newLocker(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil), core.WithCommandTimeout(4 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond) // leases may be left
		defer cancel()
		_ = locks.Close(ctx)
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// newInspector returns an Inspector that does not log.
func newInspector(t testing.TB, rdb redis.UniversalClient, opts ...inspect.Option) *inspect.Inspector {
	t.Helper()
	return must(inspect.New(rdb, append(opts, inspect.WithObserver(func(core.Event) {}))...))(t)
}

// must returns the result of a call. It fails the test if the call has failed.
func must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// wantError fails the test unless err is the one that is wanted.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

// wait makes another process wait for the key until the test ends. It returns when the process is in
// the queue, with the channel that gets its lease.
func wait(t *testing.T, i *inspect.Inspector, locks *core.Locker, key string) <-chan *core.Lease {
	t.Helper()
	before := 0
	if lock, err := i.Lock(t.Context(), key); err == nil {
		before = lock.Waiting
	}
	leases, ended := make(chan *core.Lease, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		if lease, err := locks.Lock(ctx, key); err == nil {
			leases <- lease
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	suite.Eventually(t, "a process waits", func() bool {
		lock, err := i.Lock(t.Context(), key)
		return err == nil && lock.Waiting > before
	})
	return leases
}

// processOf returns the id of the process of a lease.
func processOf(lease *core.Lease) string {
	process, _, _ := strings.Cut(lease.Token(), ":")
	return process
}

// start starts a server, on which the code under test has the rights.
func start(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Reuse(t)
	server.Grant(rights...)
	return server
}

// onEachKind runs the test on one server, with Sentinel and on a cluster.
func onEachKind(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipSentinels(t)
			d := kind.Start(t)
			d.Grant(rights...)
			test(t, d.Client(t))
		})
	}
}

// rights are what an Inspector needs beside the rights of reqlock, as docs/inspect.md says.
var rights = []string{"+scan", "+dbsize", "+getrange", "+strlen", redistest.InstanceRight, "+hmget"}

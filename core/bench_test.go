package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// BenchmarkLock measures one lock and its release by one goroutine on a real server, with
// options that cost something for each lock, and the same two commands without reqlock.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	for name, opts := range map[string][]core.Option{
		"reqlock":     nil,
		"observed":    {core.WithObserver(func(e core.Event) { _ = e.Context().Err() })},
		"with caller": {core.WithCaller(true)},
	} {
		b.Run(name, func(b *testing.B) {
			locks := core.Must(core.New(rdb, opts...))
			defer func() { _ = locks.Close(context.Background()) }()
			benchmarkLocks(b, locks)
		})
	}
	b.Run("raw", func(b *testing.B) {
		script := redis.NewScript(compareAndDelete)
		b.ReportAllocs()
		for b.Loop() {
			if err := rdb.Do(context.Background(), "set", "raw", "token", "nx", "get", "px", 10000).Err(); err != redis.Nil { //nolint:errorlint // as go-redis returns it
				b.Fatal(err)
			}
			if err := script.Run(context.Background(), rdb, []string{"raw"}, "token").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRefusedInOutage measures how long a new caller takes that is refused at once, because
// the server is gone.
func BenchmarkRefusedInOutage(b *testing.B) {
	server := redistest.Start(b)
	locks := core.Must(core.New(server.Client(b), core.WithFailFast(time.Millisecond), core.WithWait(time.Minute)))
	defer func() { _ = locks.Close(context.Background()) }()
	server.Kill()
	suite.Eventually(b, "new callers are refused at once", func() bool {
		_, err := locks.TryLock(context.Background(), "k")
		return strings.Contains(err.Error(), "no command was served for")
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := locks.Lock(context.Background(), "k"); err == nil {
			b.Fatal("the lock was granted")
		}
	}
}

// BenchmarkHandoff measures one hand-off of a key for which many goroutines wait.
func BenchmarkHandoff(b *testing.B) {
	locks := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = locks.Close(context.Background()) }()
	benchmarkHandoffs(b, locks)
}

// benchmarkLocks measures one lock and its release by one goroutine.
func benchmarkLocks(b *testing.B, locks *core.Locker) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := locks.Lock(context.Background(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkHandoffs measures one hand-off of a key for which many goroutines wait.
func benchmarkHandoffs(b *testing.B, locks *core.Locker) {
	b.Helper()
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			lease, err := locks.Lock(context.Background(), "k")
			if err != nil {
				b.Error(err)
				return
			}
			_ = lease.Release(context.Background())
		}
	})
}

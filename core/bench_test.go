package core_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// BenchmarkLock measures one lock and its release by one goroutine on a real server, and the
// same two commands without reqlock.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	b.Run("reqlock", func(b *testing.B) {
		locks := core.Must(core.New(rdb))
		defer func() { _ = locks.Close(context.Background()) }()
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
	})
	b.Run("observed", func(b *testing.B) {
		locks := core.Must(core.New(rdb, core.WithObserver(func(e core.Event) { _ = e.Context().Err() })))
		defer func() { _ = locks.Close(context.Background()) }()
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
	})
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

// BenchmarkHandoff measures one hand-off of a key for which many goroutines wait.
func BenchmarkHandoff(b *testing.B) {
	locks := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = locks.Close(context.Background()) }()
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

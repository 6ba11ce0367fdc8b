package core_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// BenchmarkLock measures one lock and its release by one goroutine on a real server, with
// options that cost something for each lock, and the same two commands without reqlock.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	for name, opts := range map[string][]core.Option{
		"reqlock":     nil,
		"observed":    {core.WithObserver(func(e core.Event) { _ = e.Context().Err() })},
		"with caller": {core.WithCaller(true)},
		"permits":     {core.WithPermits(8)},
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

// BenchmarkShared measures one shared lock and its release by one goroutine, while so many
// other shared locks of the key are held in the process.
func BenchmarkShared(b *testing.B) {
	for _, others := range []int{0, 1, 100, 1000} {
		b.Run(strconv.Itoa(others), func(b *testing.B) {
			all := core.Must(core.New(redistest.Start(b).Client(b)))
			defer func() { _ = all.Close(context.Background()) }()
			locks := all.With(core.WithShared(true))
			for range others {
				lease, err := locks.Lock(context.Background(), "k")
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = lease.Release(context.Background()) }()
			}
			benchmarkLocks(b, locks)
		})
	}
}

// BenchmarkKeys measures lock and release by 256 goroutines, each with its own key. Their
// commands leave in batches.
func BenchmarkKeys(b *testing.B) {
	locks := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = locks.Close(context.Background()) }()
	b.SetParallelism(128)
	b.ReportAllocs()
	var keys atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		key := strconv.FormatInt(keys.Add(1), 10)
		for pb.Next() {
			lease, err := locks.Lock(context.Background(), key)
			if err != nil {
				b.Error(err)
				return
			}
			_ = lease.Release(context.Background())
		}
	})
}

// BenchmarkRead measures how a key is read from a request, without Redis.
func BenchmarkRead(b *testing.B) {
	type request struct{ id string }
	plain := core.KeyOf(func(r request) (string, error) { return r.id, nil })
	always := func(request) bool { return true }
	r := request{id: "42"}
	for name, key := range map[string]core.Key[request]{
		"plain": plain,
		"named": plain.Named("account"),
		"first": core.First(plain, plain),
		"when":  plain.When(always),
		"join":  core.Join(plain, plain),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := key.Read(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEnter measures Enter with a named key and its release, on a real server.
func BenchmarkEnter(b *testing.B) {
	locks := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = locks.Close(context.Background()) }()
	type request struct{ id, to string }
	id, to := core.Getter(func(r request) string { return r.id }), core.Getter(func(r request) string { return r.to })
	for name, key := range map[string]core.Key[request]{
		"one": id.Named("account"),
		"two": core.All(id, to).Named("account"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, release, err := core.Enter(context.Background(), locks, request{"1", "2"}, key)
				if err != nil {
					b.Fatal(err)
				}
				release()
			}
		})
	}
}

// BenchmarkAttempt measures one attempt and its commit, and one replay, on a real server, with an answer of
// 1 KiB that is stored as it is or sealed.
func BenchmarkAttempt(b *testing.B) {
	all := core.Must(core.New(redistest.Start(b).Client(b)))
	defer func() { _ = all.Close(context.Background()) }()
	answer, fingerprint, keys := make([]byte, 1024), []byte("f"), 0
	run := func(b *testing.B, locks *core.Locker) (key string) {
		b.Helper()
		keys++
		key = strconv.Itoa(keys)
		a, err := locks.Begin(context.Background(), key, fingerprint)
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Commit(context.Background(), answer); err != nil {
			b.Fatal(err)
		}
		return key
	}
	for name, locks := range map[string]*core.Locker{"plain": all, "sealed": all.With(core.WithSealer(sealerOf(b, "now")))} {
		b.Run("commit/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run(b, locks)
			}
		})
		b.Run("replay/"+name, func(b *testing.B) {
			key := run(b, locks)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := locks.Begin(context.Background(), key, fingerprint); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

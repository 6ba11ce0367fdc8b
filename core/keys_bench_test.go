package core_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

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
	plain := func(r request) (string, error) { return r.id, nil }
	always := func(request) bool { return true }
	r := request{id: "42"}
	for name, key := range map[string]core.KeyFunc[request]{
		"plain": core.Func(plain),
		"named": core.Named("account", plain),
		"first": core.First(plain, plain),
		"when":  core.When(always, plain),
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
	id, to := func(r request) (string, error) { return r.id, nil }, func(r request) (string, error) { return r.to, nil }
	for name, keys := range map[string][]core.KeyFunc[request]{
		"one": {core.Named("account", id)},
		"two": {core.Named("account", id), core.Named("account", to)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, release, err := core.Enter(context.Background(), locks, request{"1", "2"}, keys...)
				if err != nil {
					b.Fatal(err)
				}
				release()
			}
		})
	}
}

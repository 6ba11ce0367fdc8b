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

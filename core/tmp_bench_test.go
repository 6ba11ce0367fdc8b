package core_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

type cnt struct{ single, pipes, cmds atomic.Int64; dur atomic.Int64 }

func (c *cnt) DialHook(n redis.DialHook) redis.DialHook { return n }
func (c *cnt) ProcessHook(n redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.single.Add(1); return n(ctx, cmd) }
}
func (c *cnt) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.pipes.Add(1); c.cmds.Add(int64(len(cmds)))
		b := time.Now(); defer func() { c.dur.Add(int64(time.Since(b))) }()
		return n(ctx, cmds)
	}
}

func BenchmarkTmp(b *testing.B) {
	for _, n := range []int{2, 8, 32, 128, 256} {
		b.Run(fmt.Sprint(2*n), func(b *testing.B) {
			rdb := redistest.Start(b).Client(b)
			c := &cnt{}
			rdb.AddHook(c)
			locks := core.Must(core.New(rdb))
			defer func() { _ = locks.Close(context.Background()) }()
			b.SetParallelism(n)
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
			b.ReportMetric(float64(c.single.Load())/float64(b.N), "singles/op")
			b.ReportMetric(float64(c.cmds.Load())/float64(c.pipes.Load()+1), "cmds/pipe")
			b.ReportMetric(float64(c.dur.Load())/1000/float64(c.pipes.Load()+1), "us/pipe")
		})
	}
}

package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/alicebob/miniredis/v2"
	"github.com/reqlock/reqlock/core"
)

func TestSmoke(t *testing.T) {
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	locks := core.Must(core.New(rdb, core.WithTTL(time.Second)))
	var in, max, n atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := locks.Do(context.Background(), "a", func(ctx context.Context) error {
				if v := in.Add(1); v > max.Load() { max.Store(v) }
				time.Sleep(time.Millisecond)
				in.Add(-1)
				n.Add(1)
				return nil
			})
			if err != nil { t.Error(err) }
		})
	}
	wg.Wait()
	t.Log(n.Load(), max.Load())
	l, err := locks.TryLock(context.Background(), "a")
	if err != nil { t.Fatal(err) }
	_, err = locks.TryLock(context.Background(), "a")
	if !errors.Is(err, core.ErrBusy) { t.Fatal(err) }
	o, _ := core.OutcomeOf(err)
	t.Logf("%+v %v", o, err)
	t.Log(l.Token(), l.Release(context.Background()))
	t.Log(locks.Close(context.Background()))
	m.Close()
	locks = core.Must(core.New(rdb, core.WithTTL(time.Second)))
	s := time.Now()
	_, err = locks.TryLock(context.Background(), "a")
	t.Log(err, time.Since(s))
}

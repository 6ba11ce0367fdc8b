package engine

import (
	"context"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The event of a waiter names its key, even if the queue is recycled at that moment. Run
// with -race.
func TestWaitingEventReadsNoRecycledQueue(t *testing.T) {
	t.Parallel()
	e, s, _ := newEngine()
	e.hooks.Observe = func(Event) {}
	s.set("k", "other:1", time.Hour)
	var group sync.WaitGroup
	var errs [2]error
	for i := range errs {
		group.Go(func() { _, errs[i] = e.Acquire(context.Background(), request(WaitForever)) })
		time.Sleep(50 * time.Millisecond) // orders nothing for the race detector
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	group.Wait()
	for _, err := range errs {
		if reasonOf(t, err) != ClosedDown {
			t.Errorf("after Close: %v", err)
		}
	}
}

// An Extend that crosses the loss and the release of its lease does not read a queue
// that is reused for another key. Run with -race.
func TestExtendReadsNoRecycledQueue(t *testing.T) {
	t.Parallel()
	e, s, _ := newEngine()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 5000 {
			h, err := e.Acquire(context.Background(), request(WaitForever))
			if err != nil {
				t.Error(err)
				return
			}
			var group sync.WaitGroup
			group.Go(func() { _, _ = h.Extend(context.Background(), time.Minute) })
			group.Go(func() {
				runtime.Gosched()
				e.loseAll()
				_, _ = h.Release(context.Background())
			})
			group.Wait()
			s.set("k", "", 0)
		}
	}()
	<-stop
	_ = e.Close(context.Background())
}

// A queue that is always in use does not keep the context of its first holder.
func TestBusyQueueDropsFirstHolder(t *testing.T) {
	e, _, _ := newEngine()
	e.hooks.Observe = nil
	freed := make(chan struct{})
	type big [1 << 20]byte
	type bigKey struct{}
	func() {
		b := new(big)
		runtime.AddCleanup(b, func(struct{}) { close(freed) }, struct{}{})
		h, err := e.Acquire(context.WithValue(context.Background(), bigKey{}, b), request(WaitForever))
		if err != nil {
			t.Fatal(err)
		}
		// A caller waits for longer than the budget, so that the queue is not recycled.
		go func() {
			h, err := e.Acquire(context.Background(), request(WaitForever))
			if err == nil {
				<-freed
				_, _ = h.Release(context.Background())
			}
		}()
		time.Sleep(60 * time.Millisecond)
		_, _ = h.Release(context.Background())
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			_ = e.Close(context.Background())
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the first holder's context is kept")
	close(freed)
}

// A shard keeps a few queues for reuse. They refer to no record, no context and no hold.
func TestRecycledQueuesAreEmpty(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		var holds []*Hold
		for i := range 64 * shardCount { // enough for each shard
			r := attempt("f", 0)
			r.Key = strconv.Itoa(i)
			holds = append(holds, hold(t, e, r))
		}
		for _, h := range holds {
			end(t, h, EndCommit)
		}
		e.eachShard(func(s *shard) {
			if len(s.recycled) != maxRecycled {
				t.Errorf("%d queues are kept", len(s.recycled))
			}
			for _, q := range s.recycled {
				if !reflect.ValueOf(q.queueState).IsZero() || !reflect.ValueOf(q.firstLease.leaseState).IsZero() {
					t.Fatalf("a queue is not empty: %+v, %+v", q.queueState, q.firstLease.leaseState)
				}
			}
		})
	})
}

// A queue is reused for another key. Holds of its old key do not touch it.
func TestOldHoldDoesNotTouchReusedQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		old := hold(t, e, request(0))
		token, ctx := old.Token(), old.Context()
		release(t, old)
		until := time.Now()
		if n := e.queueCount(); n != 0 {
			t.Fatalf("%d queues", n)
		}
		r := request(0)
		for e.shardOf(r.Key) != e.shardOf("k") || r.Key == "k" {
			r.Key += "k"
		}
		time.Sleep(time.Second)
		now := hold(t, e, r)
		if now.lease.queue != old.lease.queue {
			t.Fatal("the queue is not reused")
		}
		if old.Token() != token || !old.ValidUntil().Equal(until) || ctx.Err() == nil || old.Alive() {
			t.Errorf("the old hold: %q until %v, %v, alive %v", old.Token(), old.ValidUntil(), ctx.Err(), old.Alive())
		}
		if loss, err := old.Extend(t.Context(), time.Hour); loss != Taken || err != nil {
			t.Errorf("extend: %v, %v", loss, err)
		}
		release(t, old) // a second time
		if !now.Alive() || now.Context().Err() != nil || s.value(r.Key) != now.Token() {
			t.Error("the new one is gone")
		}
		release(t, now)
	})
}

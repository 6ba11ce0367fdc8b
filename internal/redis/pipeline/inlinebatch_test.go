package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// If a hook panics in an inline batch, the lane sends the calls of that batch again, and the
// calls that wait behind it. Close does not wait for the batch.
func TestPanicInHookLosesNoCall(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t, storetest.Deadlines, storetest.LongReads)
	var once sync.Once
	var s *syncStore
	others := make(chan result, 3)
	rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) {
		if isInline(ctx) {
			once.Do(func() {
				for i := range cap(others) {
					r := storetest.Request(storetest.Me1)
					r.Key = fmt.Sprint("other", i)
					s.testStore.Take(r, func(answer store.Answer, err error) { others <- result{answer, err} })
				}
				panic("in a hook")
			})
		}
	}})
	s = newStore(t, rdb)
	makeFast(t, s)
	answered := make(chan result, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		s.testStore.Take(inline("k"), func(answer store.Answer, err error) { answered <- result{answer, err} })
	}()
	begun := time.Now()
	if got := suite.Receive(t, "the inline call is answered", answered); got.err != nil || !got.answer.Granted || time.Since(begun) > storetest.Patience {
		t.Errorf("the inline call: %+v after %v", got, time.Since(begun))
	}
	for range cap(others) {
		if got := suite.Receive(t, "each call behind it is answered", others); got.err != nil || !got.answer.Granted {
			t.Errorf("a call that waits behind it: %+v", got)
		}
	}
}

// A call that waits behind an inline batch whose caller has returned survives a lost reply.
func TestCallBehindDetachedInlineBatchIsResent(t *testing.T) {
	t.Parallel()
	for name, offersInline := range map[string]bool{"inline": true, "not inline": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testCallBehindInlineBatch(t, offersInline) })
	}
}

func testCallBehindInlineBatch(t *testing.T, offersInline bool) {
	t.Helper()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.Deadlines, func(o *redis.Options) { o.PoolSize = 2 })
	s := newStore(t, rdb)
	t.Cleanup(proxy.Cut) // Close waits for the batch whose reply was lost
	makeFast(t, s)
	var conns [2]*redis.Conn // the whole pool
	for i := range conns {
		conns[i] = rdb.Conn()
		if err := conns[i].Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	proxy.DropReply(func(command []string) bool { return command[0] == "SET" && command[1] == "p:other" }, redistest.KeepConn)
	inFlight, queued := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() {
		close(inFlight)
		<-queued
	})
	rdb.AddHook(storetest.BeforeEach{Before: func(context.Context) { first() }})
	other := make(chan result, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r := inline("k")
		r.Inline = offersInline
		takeInline(s, r)
	}()
	suite.AwaitClosed(t, "the batch is in flight", inFlight)
	r := storetest.Request(storetest.Me2)
	r.Key, r.Bound = "other", 2*time.Second
	s.testStore.Take(r, func(answer store.Answer, err error) { other <- result{answer, err} })
	close(queued)
	suite.AwaitClosed(t, "the caller returns", returned)
	for _, conn := range conns {
		_ = conn.Close()
	}
	if got := suite.Receive(t, "the other call is answered", other); got.err != nil || !got.answer.Granted {
		t.Errorf("a call whose first reply was lost: %+v", got)
	}
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// inline returns a request for a key. Its caller waits for the reply.
func inline(key string) storetest.AnyRequest {
	r := storetest.Request(storetest.Me1)
	r.Key, r.Inline, r.Bound = key, true, storetest.LongBound
	return r
}

// acquireLane returns the lane of takes of a key.
func (s *syncStore) acquireLane(key string) *lane {
	x := Call{Key: s.names.AppendLock(nil, key)}
	return &s.pipeline.lanesOf(&x).acquires
}

// makeFast takes keys until the lane counts as fast: in a cluster, the lane of the key
// "warm". Hooks have to be added before.
func makeFast(t *testing.T, s *syncStore) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < storetest.Patience; {
		r := storetest.Request(storetest.Me1)
		r.Key = "warm"
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		lane := s.acquireLane("warm")
		lane.mu.Lock()
		fast := lane.wasFast && lane.inFlight == nil
		lane.mu.Unlock()
		if fast {
			return
		}
	}
	t.Fatal("the lane is never fast")
}

// A result is the answer to a take, and its error.
type result struct {
	answer store.Answer
	err    error
}

// takeInline takes a key inline. It returns how long Take took, and the channel of the
// result.
func takeInline(s *syncStore, r storetest.AnyRequest) (kept time.Duration, answered chan result) {
	answered = make(chan result, 2)
	begun := time.Now()
	s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
	return time.Since(begun), answered
}

func TestLoneCallerRunsInline(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*syncStore, *storetest.AnyRequest){
		"it leads":                       nil,
		"it did not offer to":            func(_ *syncStore, r *storetest.AnyRequest) { r.Inline = false },
		"the server is slow":             func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.wasFast = false },
		"there are many":                 func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.wasShared = true },
		"it may not be kept for so long": func(_ *syncStore, r *storetest.AnyRequest) { r.Bound = store.InlineTime },
		"the client knows no deadlines":  func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.canRunInline = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t, storetest.Deadlines)
			var ranInline atomic.Bool
			rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { ranInline.CompareAndSwap(false, isInline(ctx)) }})
			s := newStore(t, rdb)
			makeFast(t, s)
			r := inline("k")
			if change != nil {
				change(s, &r)
			}
			_, answered := takeInline(s, r)
			got := <-answered
			if tooLate := errors.Is(got.err, command.ErrNoReply) && r.Bound < storetest.LongBound; !tooLate && (got.err != nil || !got.answer.Granted) {
				t.Errorf("%+v", got)
			}
			if ranInline.Load() != (change == nil) {
				t.Errorf("inline: %v", ranInline.Load())
			}
		})
	}
}

// isInline reports whether the context is that of a batch that its caller runs.
func isInline(ctx context.Context) bool {
	_, inline := ctx.(*inlineContext)
	return inline
}

// If the server stops answering, Take returns after store.InlineTime, and its command is
// sent again. It may return later on a busy machine, but not after the test's patience.
func TestInlineCallerReturnsWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy, direct := redistest.NewProxy(t, server.Addr()), server.Client(t)
	s := newStore(t, proxy.Client(t, storetest.Deadlines, storetest.LongReads))
	makeFast(t, s)
	dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	kept, answered := takeInline(s, inline("k"))
	<-dropped
	if kept > storetest.Patience {
		t.Errorf("kept for %v", kept)
	}
	begun := time.Now()
	if got := <-answered; got.err != nil || !got.answer.Granted || time.Since(begun) > storetest.Patience {
		t.Errorf("%+v after %v", got, time.Since(begun)) // it is sent again after store.InlineTime
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
}

// Take also returns if the pool has no connection for it.
func TestInlineCallerReturnsWithoutConnection(t *testing.T) {
	t.Parallel()
	if redistest.MinimalRights() {
		t.Skip("the command that takes the only connection uses another client there")
	}
	server := redistest.Start(t)
	rdb := server.Client(t, storetest.Deadlines, storetest.LongReads, func(o *redis.Options) { o.PoolSize = 1 })
	s := newStore(t, rdb)
	makeFast(t, s)
	conn := rdb.Conn() // the only one
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	kept, answered := takeInline(s, inline("k"))
	if kept > storetest.Patience {
		t.Errorf("kept for %v", kept)
	}
	if len(answered) > 0 {
		t.Fatalf("answered without a connection: %+v", <-answered)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.err != nil || !got.answer.Granted {
		t.Errorf("%+v", got)
	}
	if len(answered) > 0 {
		t.Error("answered twice")
	}
}

// If a hook panics in an inline batch, the calls of that batch and those behind it are
// sent, and Close does not wait for the batch.
func TestPanicInHookStrandsNoCall(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t, storetest.Deadlines, storetest.LongReads)
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
				panic("a hook's")
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
	if got := <-answered; got.err != nil || !got.answer.Granted || time.Since(begun) > storetest.Patience {
		t.Errorf("the inline call: %+v after %v", got, time.Since(begun))
	}
	for range cap(others) {
		if got := <-others; got.err != nil || !got.answer.Granted {
			t.Errorf("a call behind it: %+v", got)
		}
	}
}

// A call that waits behind an inline batch whose caller has returned survives a lost reply.
func TestCallBehindDetachedInlineBatchIsResent(t *testing.T) {
	t.Parallel()
	for name, inlined := range map[string]bool{"inline": true, "control, not inline": false} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testCallBehindInlineBatch(t, inlined) })
	}
}

func testCallBehindInlineBatch(t *testing.T, inlined bool) {
	t.Helper()
	server := redistest.Start(t)
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
	other := make(chan result, 1)
	back := make(chan chan result, 1)
	go func() {
		r := inline("k")
		r.Inline = inlined
		_, answered := takeInline(s, r)
		back <- answered
	}()
	for inFlight := false; !inFlight; {
		s.pipeline.acquires.mu.Lock()
		inFlight = s.pipeline.acquires.inFlight != nil
		s.pipeline.acquires.mu.Unlock()
		runtime.Gosched()
	}
	r := storetest.Request(storetest.Me2)
	r.Key, r.Bound = "other", 2*time.Second
	s.testStore.Take(r, func(answer store.Answer, err error) { other <- result{answer, err} })
	<-back // the caller has returned
	for _, conn := range conns {
		_ = conn.Close()
	}
	if got := <-other; got.err != nil || !got.answer.Granted {
		t.Errorf("a call whose first reply was lost: %+v", got)
	}
}

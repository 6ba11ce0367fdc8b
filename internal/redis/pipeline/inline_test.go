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

// inline returns a request for a key of its own, whose caller waits for it.
func inline(key string) store.Request {
	r := storetest.Request(storetest.Me1)
	r.Key, r.Inline, r.Bound = key, true, storetest.LongBound
	return r
}

// asked returns the lane of those who ask for a key.
func (s *syncStore) asked(key string) *lane {
	x := Call{Key: s.names.AppendLock(nil, key)}
	return &s.pipeline.lanesOf(&x).acquires
}

// makeFast makes the lane of those who ask a swift one, that of the key "warm" in a
// cluster. Its hooks are added before.
func makeFast(t *testing.T, s *syncStore) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < storetest.Patience; {
		r := storetest.Request(storetest.Me1)
		r.Key = "warm"
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		asked := s.asked("warm")
		asked.mu.Lock()
		swift := asked.wasFast && asked.inFlight == nil
		asked.mu.Unlock()
		if swift {
			return
		}
	}
	t.Fatal("never swift")
}

// result is the answer to an inline take, and whether it came before Take returned.
type result struct {
	answer store.Answer
	err    error
}

// takeInline takes inline. It returns how long the caller was kept, and where the
// answer comes.
func takeInline(s *syncStore, r store.Request) (kept time.Duration, answered chan result) {
	answered = make(chan result, 2)
	begun := time.Now()
	s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
	return time.Since(begun), answered
}

func TestLoneCallerRunsInline(t *testing.T) {
	for name, change := range map[string]func(*syncStore, *store.Request){
		"it leads":                       nil,
		"it did not offer to":            func(_ *syncStore, r *store.Request) { r.Inline = false },
		"the server is slow":             func(s *syncStore, _ *store.Request) { s.pipeline.acquires.wasFast = false },
		"there are many":                 func(s *syncStore, _ *store.Request) { s.pipeline.acquires.wasShared = true },
		"it may not be kept for so long": func(_ *syncStore, r *store.Request) { r.Bound = store.InlineTime },
		"the client knows no deadlines":  func(s *syncStore, _ *store.Request) { s.pipeline.acquires.canRunInline = false },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t, storetest.Deadlines)
			var led atomic.Bool
			rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { led.CompareAndSwap(false, isLed(ctx)) }})
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
			if led.Load() != (change == nil) {
				t.Errorf("led: %v", led.Load())
			}
		})
	}
}

// isLed reports whether a batch that is sent under the context is led by a caller,
// who may have been let go since.
func isLed(ctx context.Context) bool {
	_, led := ctx.(*inlineContext)
	return led
}

// A server that falls silent keeps the caller no longer than was agreed, and its
// command is answered all the same.
func TestInlineCallerReturnsWhenServerIsSilent(t *testing.T) {
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
		t.Errorf("%+v after %v", got, time.Since(begun)) // it is sent again when the leader is let go
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
}

// The same where there is no connection for it.
func TestInlineCallerReturnsWithoutConnection(t *testing.T) {
	if redistest.MinimalRights() {
		t.Skip("what takes the only connection is a command of the test's own, which goes another way there")
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

// A leader that dies leaves nobody behind, and Close does not wait for it.
func TestPanicInHookStrandsNoCall(t *testing.T) {
	rdb := redistest.Start(t).Client(t, storetest.Deadlines, storetest.LongReads)
	var once sync.Once
	var s *syncStore
	followers := make(chan result, 3)
	rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) {
		if isLed(ctx) {
			once.Do(func() {
				for i := range cap(followers) {
					r := storetest.Request(storetest.Me1)
					r.Key = fmt.Sprint("follower", i)
					s.testStore.Take(r, func(answer store.Answer, err error) { followers <- result{answer, err} })
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
		t.Errorf("the leader's own command: %+v after %v", got, time.Since(begun))
	}
	for range cap(followers) {
		if got := <-followers; got.err != nil || !got.answer.Granted {
			t.Errorf("a follower: %+v", got)
		}
	}
}

// Who stands behind a leader that was let go survives a lost reply as well.
func TestCallBehindDetachedInlineBatchIsResent(t *testing.T) {
	for name, inlined := range map[string]bool{"led": true, "control, not led": false} {
		t.Run(name, func(t *testing.T) { followerIsSentAgain(t, inlined) })
	}
}

func followerIsSentAgain(t *testing.T, inlined bool) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, storetest.Deadlines, func(o *redis.Options) { o.PoolSize = 2 })
	s := newStore(t, rdb)
	makeFast(t, s)
	var conns [2]*redis.Conn // all
	for i := range conns {
		conns[i] = rdb.Conn()
		if err := conns[i].Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	proxy.DropReply(func(command []string) bool { return command[0] == "SET" && command[1] == "p:follower" }, redistest.KeepConn)
	follower := make(chan result, 1)
	back := make(chan chan result, 1)
	go func() {
		r := inline("k")
		r.Inline = inlined
		_, answered := takeInline(s, r)
		back <- answered
	}()
	for flying := false; !flying; {
		s.pipeline.acquires.mu.Lock()
		flying = s.pipeline.acquires.inFlight != nil
		s.pipeline.acquires.mu.Unlock()
		runtime.Gosched()
	}
	r := storetest.Request(storetest.Me2)
	r.Key, r.Bound = "follower", 2*time.Second
	s.testStore.Take(r, func(answer store.Answer, err error) { follower <- result{answer, err} })
	<-back // the leader was let go
	for _, conn := range conns {
		_ = conn.Close()
	}
	if got := <-follower; got.err != nil || !got.answer.Granted {
		t.Errorf("a follower whose first reply was lost: %+v", got)
	}
}

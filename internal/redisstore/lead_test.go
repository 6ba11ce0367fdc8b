package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

// inline returns a request for a key of its own, whose caller waits for it.
func inline(key string) store.Request {
	r := request(me1)
	r.Key, r.Inline = key, true
	return r
}

// warm makes the lane of those who ask a swift one. Its hooks are added before.
func warm(t *testing.T, s *syncStore) {
	t.Helper()
	for range 100 {
		r := request(me1)
		r.Key = "warm"
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		s.takes.mu.Lock()
		swift := s.takes.swift && s.takes.flight == nil
		s.takes.mu.Unlock()
		if swift {
			return
		}
	}
	t.Fatal("never swift")
}

// own is the answer to an inline take, and whether it came before Take returned.
type own struct {
	answer store.Answer
	err    error
}

// lead takes inline. It returns how long the caller was kept, and where the
// answer comes.
func lead(s *syncStore, r store.Request) (kept time.Duration, answered chan own) {
	answered = make(chan own, 2)
	begun := time.Now()
	s.Store.Take(r, func(answer store.Answer, err error) { answered <- own{answer, err} })
	return time.Since(begun), answered
}

func TestALoneCallerLeads(t *testing.T) {
	for name, change := range map[string]func(*syncStore, *store.Request){
		"it leads":                       nil,
		"it did not offer to":            func(_ *syncStore, r *store.Request) { r.Inline = false },
		"the server is slow":             func(s *syncStore, _ *store.Request) { s.takes.swift = false },
		"there are many":                 func(s *syncStore, _ *store.Request) { s.takes.crowded = true },
		"it may not be kept for so long": func(_ *syncStore, r *store.Request) { r.Bound = store.InlineTime },
		"the client knows no deadlines":  func(s *syncStore, _ *store.Request) { s.takes.leadable = false },
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t, deadlines)
			var s *syncStore
			var led atomic.Bool
			rdb.AddHook(beforeEach{before: func() { led.Store(s.isLed()) }})
			s = newStore(t, rdb)
			warm(t, s)
			r := inline("k")
			if change != nil {
				change(s, &r)
			}
			_, answered := lead(s, r)
			if got := <-answered; got.err != nil || !got.answer.Granted {
				t.Errorf("%+v", got)
			}
			if led.Load() != (change == nil) {
				t.Errorf("led: %v", led.Load())
			}
		})
	}
}

// deadlines makes a client one with which callers may lead.
func deadlines(o *redis.Options) { o.ContextTimeoutEnabled = true }

// isLed reports whether the batch in flight is led by a caller.
func (s *syncStore) isLed() bool {
	s.takes.mu.Lock()
	defer s.takes.mu.Unlock()
	return s.takes.flight != nil && s.takes.flight.by.over != nil
}

// beforeEach calls a function ahead of each command that is sent alone.
type beforeEach struct {
	breaker
	before func()
}

func (c beforeEach) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.before()
		return next(ctx, cmd)
	}
}

func (c beforeEach) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A server that falls silent keeps the caller no longer than was agreed, and its
// command is answered all the same.
func TestALeaderIsLetGo(t *testing.T) {
	server := redistest.Start(t)
	proxy, direct := redistest.NewProxy(t, server.Addr()), server.Client(t)
	s := newStore(t, proxy.Client(t, deadlines))
	warm(t, s)
	dropped := proxy.DropReply(redistest.Named("SET"), redistest.Swallow)
	kept, answered := lead(s, inline("k"))
	<-dropped
	if kept > request(me1).Bound/4 {
		t.Errorf("kept for %v", kept)
	}
	if got := <-answered; got.err != nil || !got.answer.Granted {
		t.Errorf("%+v", got)
	}
	state{value: me1, ttl: ttl}.check(t, direct)
}

// The same where there is no connection for it.
func TestALeaderWithoutAConnectionIsLetGo(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t, deadlines, func(o *redis.Options) { o.PoolSize = 1 })
	s := newStore(t, rdb)
	warm(t, s)
	conn := rdb.Conn() // the only one
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	kept, answered := lead(s, inline("k"))
	if kept > request(me1).Bound/4 {
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
func TestADeadLeaderStrandsNobody(t *testing.T) {
	rdb := redistest.Start(t).Client(t, deadlines)
	var once sync.Once
	var s *syncStore
	followers := make(chan own, 3)
	rdb.AddHook(beforeEach{before: func() {
		if s.isLed() {
			once.Do(func() {
				for i := range cap(followers) {
					r := request(me1)
					r.Key = fmt.Sprint("follower", i)
					s.Store.Take(r, func(answer store.Answer, err error) { followers <- own{answer, err} })
				}
				panic("a hook's")
			})
		}
	}})
	s = newStore(t, rdb)
	warm(t, s)
	answered := make(chan own, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		s.Store.Take(inline("k"), func(answer store.Answer, err error) { answered <- own{answer, err} })
	}()
	if got := <-answered; got.err != nil || !got.answer.Granted {
		t.Errorf("the leader's own command: %+v", got)
	}
	for range cap(followers) {
		if got := <-followers; got.err != nil || !got.answer.Granted {
			t.Errorf("a follower: %+v", got)
		}
	}
}

// Exchanges serve again: what one says and is told is never another's.
func TestExchangesServeAgain(t *testing.T) {
	rdb := redistest.Start(t).Client(t, deadlines)
	s := newStore(t, rdb)
	const workers, rounds = 32, 60
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				r := request(fmt.Sprintf("%s:%d", me, w*rounds+i))
				r.Key, r.Inline, r.Alone = fmt.Sprint("key", w), i%2 == 0, i%3 == 0
				r.TTL += time.Duration(w) * time.Minute
				do := s.Take
				if i%5 == 0 {
					do, r.Fences = s.Enqueue, i%10
				}
				got, err := do(t.Context(), r)
				if err != nil || !got.Granted || (got.Fence > 0) != (r.Fences > 0) {
					t.Errorf("%+v, %v", got, err)
				}
				if i%7 == 0 {
					value, left := rdb.Get(t.Context(), "p:"+r.Key).Val(), rdb.PTTL(t.Context(), "p:"+r.Key).Val()
					if value != r.Token || !isLife(left, r.TTL) {
						t.Errorf("%s: %q for %v, want %q for %v", r.Key, value, left, r.Token, r.TTL)
					}
				}
				if renewal, err := s.Renew(t.Context(), r); err != nil || !renewal.Held {
					t.Errorf("renew: %+v, %v", renewal, err)
				}
				if released, err := s.Release(t.Context(), r); err != nil || released.End != store.Freed {
					t.Errorf("release: %+v, %v", released, err)
				}
			}
		})
	}
	group.Wait()
	left := rdb.Keys(t.Context(), "p:*").Val()
	if i := slices.IndexFunc(left, func(key string) bool { return key[:len(theLock)-1] == "p:k" }); i >= 0 {
		t.Errorf("left over: %q", left)
	}
}

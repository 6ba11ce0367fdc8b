package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// inline returns a request whose caller offers to run the batch.
func inline(key string) storetest.AnyRequest {
	r := storetest.Request(storetest.Me1)
	r.Key, r.Inline, r.Bound = key, true, storetest.LongBound
	return r
}

// acquireLane returns the lane that takes the key.
func (s *syncStore) acquireLane(key string) *lane {
	x := Call{Key: s.names.AppendLock(nil, key)}
	return &s.pipeline.lanesOf(&x).acquires
}

// makeFast takes the key "warm" until the last batch of its lane was fast. Add the hooks of the
// client before.
func makeFast(t *testing.T, s *syncStore) {
	t.Helper()
	suite.Eventually(t, "a batch was fast", func() bool {
		r := storetest.Request(storetest.Me1)
		r.Key = "warm"
		if _, err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		lane := s.acquireLane("warm")
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return lane.wasFast && lane.inFlight == nil
	})
}

type result struct {
	answer store.Answer
	err    error
}

// takeInline sends a take. It returns how long Take took, and the channel of the result.
func takeInline(s *syncStore, r storetest.AnyRequest) (took time.Duration, answered chan result) {
	answered = make(chan result, 2)
	begun := time.Now()
	s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
	return time.Since(begun), answered
}

func TestLoneCallerRunsInline(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*syncStore, *storetest.AnyRequest){
		"alone on a fast lane":                     nil,
		"the caller does not offer it":             func(_ *syncStore, r *storetest.AnyRequest) { r.Inline = false },
		"the last batch was slow":                  func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.wasFast = false },
		"the last batch had several commands":      func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.wasShared = true },
		"the bound is too short":                   func(_ *syncStore, r *storetest.AnyRequest) { r.Bound = store.InlineTime },
		"the client ignores deadlines of contexts": func(s *syncStore, _ *storetest.AnyRequest) { s.pipeline.acquires.canRunInline = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t, storetest.Deadlines)
			var ranInline atomic.Bool
			rdb.AddHook(storetest.BeforeEach{Before: func(ctx context.Context) { ranInline.CompareAndSwap(false, isInline(ctx)) }})
			s := newStore(t, rdb)
			makeFast(t, s)
			r := inline("k")
			if change != nil {
				change(s, &r)
			}
			_, answered := takeInline(s, r)
			got := suite.Receive(t, "the take is answered", answered)
			if tooLate := errors.Is(got.err, command.ErrNoReply) && r.Bound < storetest.LongBound; !tooLate && (got.err != nil || !got.answer.Granted) {
				t.Errorf("%+v", got)
			}
			if ranInline.Load() != (change == nil) {
				t.Errorf("inline: %v", ranInline.Load())
			}
		})
	}
}

// isInline reports whether the context belongs to an inline batch.
func isInline(ctx context.Context) bool {
	_, inline := ctx.(*inlineContext)
	return inline
}

// If the server does not reply, Take returns after store.InlineTime, and the lane sends its
// command again. The limit of the test is longer, because the machine may be busy.
func TestInlineCallerReturnsWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy, direct := redistest.NewProxy(t, server.Addr()), server.Client(t)
	s := newStore(t, proxy.Client(t, storetest.Deadlines, storetest.LongReads))
	makeFast(t, s)
	dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	took, answered := takeInline(s, inline("k"))
	suite.AwaitClosed(t, "the reply is lost", dropped)
	if took > storetest.Patience {
		t.Errorf("Take returned after %v", took)
	}
	begun := time.Now()
	if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted || time.Since(begun) > storetest.Patience {
		t.Errorf("%+v after %v", got, time.Since(begun))
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
}

// If the pool has no free connection, Take returns, and the call waits for a connection.
func TestInlineCallerReturnsWithoutConnection(t *testing.T) {
	t.Parallel()
	if redistest.MinimalRights() {
		t.Skip("PING, which takes the only connection, uses another client there")
	}
	server := redistest.Reuse(t)
	rdb := server.Client(t, storetest.Deadlines, storetest.LongReads, func(o *redis.Options) { o.PoolSize = 1 })
	s := newStore(t, rdb)
	makeFast(t, s)
	conn := rdb.Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	took, answered := takeInline(s, inline("k"))
	if took > storetest.Patience {
		t.Errorf("Take returned after %v", took)
	}
	if len(answered) > 0 {
		t.Fatalf("answered without a connection: %+v", <-answered)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got := suite.Receive(t, "the take is answered", answered); got.err != nil || !got.answer.Granted {
		t.Errorf("%+v", got)
	}
	if len(answered) > 0 {
		t.Error("answered twice")
	}
}

package pipeline

import (
	"context"
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

// makeFast takes the key "warm" until the last batch of its lane was fast. Add the hooks of the
// client before.
func makeFast(t *testing.T, s *takeStore) {
	t.Helper()
	warm := storetest.Request(storetest.Me1)
	warm.Key = "warm"
	suite.Eventually(t, "a batch was fast", func() bool {
		s.mustTake(warm)
		lane := &s.pipeline.lanesOf(&Call{Key: []byte("p:warm")}).acquires
		lane.mu.Lock()
		defer lane.mu.Unlock()
		return lane.wasFast && lane.inFlight == nil
	})
}

// takeInline sends a take. It returns how long that took, and the channel of the reply.
func takeInline(s *takeStore, r storetest.AnyRequest) (took time.Duration, answered <-chan Reply) {
	begun := time.Now()
	answered = s.take(r)
	return time.Since(begun), answered
}

// A call may run inline if its caller returns before the second send. The bound of the calls is just
// long enough.
func TestLoneCallerRunsInline(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeCall){
		"alone on a fast lane":                     nil,
		"the caller does not offer it":             func(c *fakeCall) { c.offersInline = false },
		"the last batch was slow":                  func(c *fakeCall) { c.fake.acquires.wasFast = false },
		"the last batch had several commands":      func(c *fakeCall) { c.fake.acquires.lastSize = 2 },
		"the bound is too short":                   func(c *fakeCall) { c.resendAfter = store.InlineTime - 1 },
		"the client ignores deadlines of contexts": func(c *fakeCall) { c.fake.acquires.canRunInline = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				f.makeFast()
				c := f.call("c", 2*store.InlineTime)
				c.offersInline = true
				if change != nil {
					change(c)
				}
				go f.Do(&c.Call, Acquire)
				b := f.next(0, "c")
				if isInline(b.ctx) != (change == nil) {
					t.Errorf("inline: %v", isInline(b.ctx))
				}
				b.reply("ok")
				c.wantReply(0, "ok")
			})
		})
	}
}

// isInline reports whether the context belongs to an inline batch.
func isInline(ctx context.Context) bool {
	_, inline := ctx.(*inlineContext)
	return inline
}

// If the server does not reply, take returns after store.InlineTime, and the lane sends its command
// again. The limit of the test is longer, because the machine may be busy. A hook may derive a
// context for each command, as hooks for timeouts and tracing do: so the context of an inline batch
// does not change while they read it, and has an error when it has ended.
func TestInlineCallerReturnsWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	s, proxy := behindProxy(t)
	s.pipeline.rdb.(*redis.Client).AddHook(derivedContextHook{})
	for range 5 {
		makeFast(t, s)
		dropped := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
		took, answered := takeInline(s, inline("k"))
		suite.AwaitClosed(t, "the reply is lost", dropped)
		if took > storetest.Patience {
			t.Errorf("take returned after %v", took)
		}
		begun := time.Now()
		if got := suite.Receive(t, "the take is answered", answered); !isGranted(got, inline("k")) || time.Since(begun) > storetest.Patience {
			t.Errorf("%+v after %v", got, time.Since(begun))
		}
	}
	t.Cleanup(proxy.Cut) // Close waits for the batches whose replies were lost
}

// A derivedContextHook derives a context for each command.
type derivedContextHook struct{ storetest.OpenCircuit }

func (derivedContextHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return next(ctx, cmd)
	}
}

func (derivedContextHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
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
	if got := suite.Receive(t, "the take is answered", answered); !isGranted(got, inline("k")) {
		t.Errorf("%+v", got)
	}
	if len(answered) > 0 {
		t.Error("answered twice")
	}
}

package pipeline

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A takeStore takes keys of a real server through a Pipeline.
type takeStore struct {
	pipeline *Pipeline
	work     inflight.Counter
	t        *testing.T
}

// newStore returns a store that the end of the test closes.
func newStore(t *testing.T, rdb redis.UniversalClient) *takeStore {
	t.Helper()
	s := &takeStore{t: t}
	s.pipeline = New(rdb, &s.work, command.Replicas{}, Width)
	storetest.CloseAtEnd(t, s)
	return s
}

func (s *takeStore) Close(ctx context.Context) error { return s.work.Wait(ctx) }

// A takeCall is a call that sends SET NX GET.
type takeCall struct {
	Call
	request storetest.AnyRequest
	done    chan Reply
}

// take sends a call of the class Acquire, and returns the channel of the reply.
func (s *takeStore) take(r storetest.AnyRequest) <-chan Reply {
	c := &takeCall{request: r, done: make(chan Reply, 2)}
	c.Begin(c, r.Bound, 0, r.Inline)
	c.Key = []byte("p:" + r.Key)
	s.pipeline.Do(&c.Call, Acquire)
	return c.done
}

// mustTake takes the key.
func (s *takeStore) mustTake(r storetest.AnyRequest) {
	s.t.Helper()
	if got := suite.Receive(s.t, "the take is answered", s.take(r)); !isGranted(got, r) {
		s.t.Fatalf("%+v", got)
	}
}

// isGranted reports whether the key was free, or had the token of the request.
func isGranted(got Reply, r storetest.AnyRequest) bool {
	_, wasFree := got.Value.(command.NilReply)
	return got.Err == nil && (wasFree || got.Value == r.Token)
}

func (c *takeCall) Command(int) command.Command {
	return command.New(1, []any{"set", string(c.Key), c.request.Token, "px", c.request.TTL.Milliseconds(), "nx", "get"})
}

func (*takeCall) Fallback(command.Command, Reply, int) command.Command { return nil }

func (c *takeCall) Settle(got Reply, _ bool) { c.done <- got }

func (*takeCall) Late(Reply) {}

func (*takeCall) Free() {}

// behindProxy returns a store behind a proxy. The client uses deadlines.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*takeStore, *redistest.Proxy) {
	t.Helper()
	rdb, proxy, _ := storetest.BehindProxy(t, append(configure, storetest.Deadlines)...)
	return newStore(t, rdb), proxy
}

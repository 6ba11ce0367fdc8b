package pubsub

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A testStore is a Subscriber with the two transitions that publish hints.
type testStore struct {
	*Subscriber
	rdb     redis.UniversalClient
	names   keyspace.Names
	scripts script.Set
	work    inflight.Counter
	hint    func(key, token string)
	warned  chan error // has room for one warning
}

// newStore returns a store of the process Me. The end of the test closes it.
func newStore(t *testing.T, rdb redis.UniversalClient) *testStore {
	t.Helper()
	return newStoreOf(t, rdb, storetest.Me)
}

// newStoreOf is newStore for another process.
func newStoreOf(t *testing.T, rdb redis.UniversalClient, process string) *testStore {
	t.Helper()
	s := &testStore{rdb: rdb, names: keyspace.New("p:"), scripts: script.New(false), hint: func(string, string) {}, warned: make(chan error, 1)}
	s.Subscriber = New(rdb, s.names, process, &s.work, func(key, token string) { s.hint(key, token) }, func(err error) { s.warned <- err })
	storetest.CloseAtEnd(t, s)
	return s
}

// behindProxy returns a store behind a proxy, the proxy, and a client that connects to
// the server without the proxy.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*testStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	rdb, proxy, direct := storetest.BehindProxy(t, configure...)
	return newStore(t, rdb), proxy, direct
}

// OnHint sets the hint function.
func (s *testStore) OnHint(hint func(key, token string)) { s.hint = hint }

// Close closes the Subscriber and waits for its goroutines.
func (s *testStore) Close(ctx context.Context) error {
	s.Subscriber.Close()
	return s.work.Wait(ctx)
}

// Enqueue runs enqueue.lua.
func (s *testStore) Enqueue(ctx context.Context, r storetest.AnyRequest) (store.Answer, error) {
	join := 0
	if r.Join {
		join = 1
	}
	reply, err := s.run(ctx, s.scripts.Enqueue, &r, join, 0)
	fields, _ := reply.([]any)
	if err == nil && len(fields) != 4 {
		err = errors.New("unexpected reply")
	}
	if err != nil {
		return store.Answer{}, err
	}
	return store.Answer{Granted: fields[0] == int64(1), ForeignHolder: fields[0] == int64(0) && fields[3] == int64(1)}, nil
}

// Release runs release.lua.
func (s *testStore) Release(ctx context.Context, r storetest.AnyRequest) (store.ReleaseResult, error) {
	reply, err := s.run(ctx, s.scripts.Release, &r, "")
	number, ok := reply.(int64)
	if err == nil && !ok {
		err = errors.New("unexpected reply")
	}
	if err != nil {
		return store.ReleaseResult{}, err
	}
	return store.ReleaseResult{Status: [...]store.ReleaseStatus{store.NotHeld, store.Freed, store.Handed, store.Kept}[number]}, nil
}

// run runs a script with the arguments that all transitions share, and args.
func (s *testStore) run(ctx context.Context, source script.Script, r *storetest.AnyRequest, args ...any) (any, error) {
	lock := s.names.Lock(r.Key)
	keys := []string{lock, s.names.Companion(lock, keyspace.QueueSuffix)}
	args = append([]any{r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), "p:", s.Mode()}, args...)
	return s.rdb.Eval(ctx, source.Source.(string), keys, args...).Result()
}

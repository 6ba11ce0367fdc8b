package pipeline

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A testStore sends the transitions of a lock through a Pipeline. It is a Store
// without subscriptions, replicas and most checks of replies.
type testStore struct {
	pipeline  *Pipeline
	names     keyspace.Names
	scripts   script.Set
	work      inflight.Counter
	lateGrant func(key, token string)
}

// A syncStore is a testStore whose transitions wait for their answers.
type syncStore struct {
	*testStore
	tb testing.TB
}

// newStore returns a store that the end of the test closes.
func newStore(t *testing.T, rdb redis.UniversalClient) *syncStore {
	t.Helper()
	return newStoreOfWidth(t, rdb, Width)
}

// newStoreOfWidth is newStore with at most width commands in a batch.
func newStoreOfWidth(t *testing.T, rdb redis.UniversalClient, width int) *syncStore {
	t.Helper()
	s := &testStore{names: keyspace.New("p:"), scripts: script.New(false), lateGrant: func(string, string) {}}
	s.pipeline = New(rdb, &s.work, command.Replicas{}, width)
	storetest.CloseAtEnd(t, s)
	return &syncStore{s, t}
}

// behindProxy returns a store behind a proxy, the proxy, and a client that connects to
// the server without the proxy.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*syncStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	rdb, proxy, direct := storetest.BehindProxy(t, configure...)
	return newStore(t, rdb), proxy, direct
}

func (s *testStore) OnLateGrant(lateGrant func(key, token string)) { s.lateGrant = lateGrant }

func (s *testStore) Close(ctx context.Context) error { return s.work.Wait(ctx) }

func (s *testStore) Take(r storetest.AnyRequest, done func(store.Answer, error)) {
	o := newOperation(s, &r, done, decodeTake)
	o.args = []any{"set", s.names.Lock(r.Key), r.Token, "px", r.TTL.Milliseconds(), "nx", "get"}
	s.pipeline.Do(&o.Call, Acquire)
}

func (s *testStore) Enqueue(r storetest.AnyRequest, done func(store.Answer, error)) {
	o := newOperation(s, &r, done, decodeEnqueue)
	if r.Attempt == nil {
		o.setScript(s.scripts.Enqueue, suffixes(&r, keyspace.QueueSuffix),
			r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), "p:", "P", flag(r.Join), r.Fences)
		s.pipeline.Do(&o.Call, Acquire)
		return
	}
	o.setScript(s.scripts.Begin, suffixes(&r, keyspace.QueueSuffix, keyspace.RecordSuffix),
		r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), "p:", "P", flag(r.Join), r.Fences,
		r.Attempt.Fingerprint, r.Attempt.Keep.Milliseconds(), "reject")
	s.pipeline.Do(&o.Call, Begin)
}

func (s *testStore) Renew(r storetest.AnyRequest, done func(store.Renewal, error)) {
	o := newOperation(s, &r, done, decodeRenew)
	o.setScript(s.scripts.Renew, suffixes(&r, keyspace.QueueSuffix), r.Token, r.TTL.Milliseconds(), r.Fences)
	s.pipeline.Do(&o.Call, Renew)
}

func (s *testStore) Release(r storetest.AnyRequest, done func(store.ReleaseResult, error)) {
	o := newOperation(s, &r, done, decodeRelease)
	if r.Attempt == nil {
		o.setScript(s.scripts.Release, []string{keyspace.QueueSuffix},
			r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), "p:", "P", r.Rejoin)
		s.pipeline.Do(&o.Call, Release)
		return
	}
	o.setScript(s.scripts.Finish, []string{keyspace.QueueSuffix, keyspace.RecordSuffix},
		r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), "p:", "P",
		"D", r.Attempt.Fingerprint, r.Attempt.Keep.Milliseconds(), r.Record)
	s.pipeline.Do(&o.Call, Commit)
}

// suffixes returns the suffixes of a script's keys. They include the suffix of the fence if
// the request asks for fencing numbers.
func suffixes(r *storetest.AnyRequest, others ...string) []string {
	if r.Fences > 0 {
		return append(others, keyspace.FenceSuffix)
	}
	return others
}

func (s *syncStore) Take(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(s.tb, func(done func(store.Answer, error)) { s.testStore.Take(r, done) })
}

func (s *syncStore) Enqueue(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(s.tb, func(done func(store.Answer, error)) { s.testStore.Enqueue(r, done) })
}

func (s *syncStore) Renew(_ context.Context, r storetest.AnyRequest) (store.Renewal, error) {
	return storetest.Await(s.tb, func(done func(store.Renewal, error)) { s.testStore.Renew(r, done) })
}

func (s *syncStore) Release(_ context.Context, r storetest.AnyRequest) (store.ReleaseResult, error) {
	return storetest.Await(s.tb, func(done func(store.ReleaseResult, error)) { s.testStore.Release(r, done) })
}

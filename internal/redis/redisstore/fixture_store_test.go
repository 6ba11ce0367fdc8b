package redisstore

import (
	"cmp"
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

func TestMain(m *testing.M) { suite.Main(m) }

// newStore returns a store of the process Me. The test closes it at its end, and waits for its
// commands in flight.
func newStore(t *testing.T, rdb redis.UniversalClient) *syncStore {
	t.Helper()
	return newStoreOf(t, rdb, storetest.Me)
}

// newStoreOf is newStore for another process.
func newStoreOf(t *testing.T, rdb redis.UniversalClient, process string) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", process, command.Replicas{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.CloseAtEnd(t, s)
	s.isModern.Store(true) // as after the first lock
	return &syncStore{Store: s, tb: t, process: process}
}

// syncStore is a store with transitions that wait for their answers.
type syncStore struct {
	*Store
	tb        testing.TB
	process   string
	noWaiters bool          // each release has NoWaiters
	bound     time.Duration // of each request; 0 means its own
	since     time.Time     // of the last answer of a transition
}

func (s *syncStore) Take(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(s.tb, func(done func(store.Answer, error)) { s.Store.Take(r.Take(), done) })
}

func (s *syncStore) Enqueue(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	r.Bound = cmp.Or(s.bound, r.Bound)
	return storetest.Await(s.tb, func(done func(store.Answer, error)) { s.Store.Enqueue(r.Enqueue(), done) })
}

func (s *syncStore) Renew(_ context.Context, r storetest.AnyRequest) (store.Renewal, error) {
	return storetest.Await(s.tb, func(done func(store.Renewal, error)) { s.Store.Renew(r.Renew(), done) })
}

func (s *syncStore) Release(_ context.Context, r storetest.AnyRequest) (store.ReleaseResult, error) {
	r.NoWaiters, r.Bound = r.NoWaiters || s.noWaiters, cmp.Or(s.bound, r.Bound)
	return storetest.Await(s.tb, func(done func(store.ReleaseResult, error)) { s.Store.Release(r.Release(), done) })
}

func (s *syncStore) Resolve(_ context.Context, r storetest.AnyRequest) (store.ResolveStatus, error) {
	return storetest.Await(s.tb, func(done func(store.ResolveStatus, error)) { s.Store.Resolve(r.Resolve(), done) })
}

func (s *syncStore) Outcome(_ context.Context, r storetest.AnyRequest) (store.Outcome, error) {
	return storetest.Await(s.tb, func(done func(store.Outcome, error)) { s.Store.Outcome(r.Outcome(), done) })
}

// setMode makes the scripts of the store publish in this mode: see queue.lua.
func (s *syncStore) setMode(mode string) { s.subscriber = modeSubscriber{s.subscriber, mode} }

// A modeSubscriber is a subscriber with another mode.
type modeSubscriber struct {
	subscriber
	mode any
}

func (m modeSubscriber) Mode() any { return m.mode }

func (modeSubscriber) SetName(string) {}

// behindProxy returns a store behind a proxy, the proxy, and a client that connects to the
// server without the proxy.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*syncStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	rdb, proxy, direct := storetest.BehindProxy(t, configure...)
	return newStore(t, rdb), proxy, direct
}

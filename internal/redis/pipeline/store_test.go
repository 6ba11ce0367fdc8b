package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

// syncStore is a testStore with transitions that return their answers.
type syncStore struct{ *testStore }

// newStore returns a store that the end of the test closes.
func newStore(t *testing.T, rdb redis.UniversalClient) *syncStore {
	t.Helper()
	s := &testStore{names: keyspace.New("p:"), scripts: script.New(false), lateGrant: func(string, string) {}}
	s.pipeline = New(rdb, &s.work, command.Replicas{})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &syncStore{s}
}

// behindProxy returns a store behind a proxy, the proxy, and a client that connects to
// the server without the proxy.
func behindProxy(t *testing.T, configure ...func(*redis.Options)) (*syncStore, *redistest.Proxy, *redis.Client) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t, append([]func(*redis.Options){storetest.ShortReads}, configure...)...)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return newStore(t, rdb), proxy, server.Client(t)
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

// suffixes returns the suffixes of a script's keys: with that of the fence if the request
// asks for fencing numbers.
func suffixes(r *storetest.AnyRequest, others ...string) []string {
	if r.Fences > 0 {
		return append(others, keyspace.FenceSuffix)
	}
	return others
}

func (s *syncStore) Take(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(func(done func(store.Answer, error)) { s.testStore.Take(r, done) })
}

func (s *syncStore) Enqueue(_ context.Context, r storetest.AnyRequest) (store.Answer, error) {
	return storetest.Await(func(done func(store.Answer, error)) { s.testStore.Enqueue(r, done) })
}

func (s *syncStore) Renew(_ context.Context, r storetest.AnyRequest) (store.Renewal, error) {
	return storetest.Await(func(done func(store.Renewal, error)) { s.testStore.Renew(r, done) })
}

func (s *syncStore) Release(_ context.Context, r storetest.AnyRequest) (store.ReleaseResult, error) {
	return storetest.Await(func(done func(store.ReleaseResult, error)) { s.testStore.Release(r, done) })
}

// A testOperation is the Operation of one transition.
type testOperation[A any] struct {
	Call
	store   *testStore
	request storetest.AnyRequest
	source  any // of the script; nil for SET
	args    []any
	done    func(A, error)
	decode  func(got Reply, token string, begun time.Time) (A, error)
}

func newOperation[A any](s *testStore, r *storetest.AnyRequest, done func(A, error), decode func(Reply, string, time.Time) (A, error)) *testOperation[A] {
	o := &testOperation[A]{store: s, request: *r, done: done, decode: decode}
	o.Begin(o, r.Bound, len(r.Record), r.Inline)
	o.Key = []byte(s.names.Lock(r.Key))
	return o
}

func (o *testOperation[A]) setScript(s script.Script, suffixes []string, args ...any) {
	lock := string(o.Key)
	o.source, o.args = s.Source, []any{"evalsha", s.SHA, 1 + len(suffixes), lock}
	for _, suffix := range suffixes {
		o.args = append(o.args, o.store.names.Companion(lock, suffix))
	}
	o.args = append(o.args, args...)
}

func (o *testOperation[A]) Command(sends int) command.Command {
	switch {
	case o.source != nil:
		return command.New(3, o.args)
	case sends > 1:
		return command.New(1, o.args)
	}
	first := &command.SetNX{}
	first.Reset(o.args[:len(o.args)-1])
	return first
}

func (o *testOperation[A]) Fallback(sent command.Command, got Reply, sends int) command.Command {
	switch {
	case got.Err != nil && o.source != nil && strings.HasPrefix(got.Err.Error(), "NOSCRIPT"):
		return command.New(3, append([]any{"eval", o.source}, sent.Args()[2:]...))
	case got.Err == nil && got.Value == command.WasSet(false) && (sends > 1 || o.request.WithHolder):
		return command.New(1, o.args)
	default:
		return nil
	}
}

func (o *testOperation[A]) Settle(got Reply, uncertain bool) {
	answer, err := o.decode(got, o.request.Token, o.Begun)
	if err != nil {
		err = command.NewFault(err, uncertain)
	}
	if released, ok := any(&answer).(*store.ReleaseResult); ok && released.Status == store.NotHeld && uncertain {
		released.Status = store.Unsure
	}
	o.done(answer, err)
}

func (o *testOperation[A]) Late(got Reply) {
	answer, err := o.decode(got, o.request.Token, o.Begun)
	if grant, ok := any(answer).(store.Answer); ok && err == nil && grant.Granted {
		o.store.lateGrant(o.request.Key, o.request.Token)
	}
}

func (o *testOperation[A]) Free() {}

var errAnswer = errors.New("a reply of another form")

func decodeTake(got Reply, token string, begun time.Time) (store.Answer, error) {
	switch value := got.Value.(type) {
	case command.WasSet:
		return store.Answer{Granted: bool(value), Since: got.Sent}, got.Err
	case command.NilReply:
		return store.Answer{Granted: true, Since: got.Sent}, got.Err
	case string:
		return store.Answer{Granted: value == token, Holder: value, Since: begun}, got.Err
	}
	return store.Answer{}, errors.Join(got.Err, missing(got))
}

func decodeEnqueue(got Reply, _ string, _ time.Time) (store.Answer, error) {
	fields, _ := got.Value.([]any)
	if len(fields) == 0 {
		return store.Answer{}, errors.Join(got.Err, missing(got))
	}
	return store.Answer{Granted: fields[0] == int64(1), Since: got.Sent}, nil
}

func decodeRenew(got Reply, _ string, _ time.Time) (store.Renewal, error) {
	fields, _ := got.Value.([]any)
	if len(fields) == 0 {
		return store.Renewal{}, errors.Join(got.Err, missing(got))
	}
	return store.Renewal{Held: fields[0] == int64(1), Since: got.Sent}, nil
}

func decodeRelease(got Reply, _ string, _ time.Time) (store.ReleaseResult, error) {
	released := store.ReleaseResult{Since: got.Sent}
	value := got.Value
	if fields, ok := value.([]any); ok && len(fields) == 2 {
		value = fields[0]
		released.Record = [...]store.RecordStatus{store.NotStored, store.WasStored, store.Restored}[fields[1].(int64)]
	}
	number, ok := value.(int64)
	if !ok {
		return store.ReleaseResult{}, errors.Join(got.Err, missing(got))
	}
	released.Status = [...]store.ReleaseStatus{store.NotHeld, store.Freed, store.Handed, store.Kept}[number]
	return released, nil
}

// missing returns an error where a reply has neither a value nor an error.
func missing(got Reply) error {
	if got.Err != nil {
		return nil
	}
	return errAnswer
}

func flag(isSet bool) int {
	if isSet {
		return 1
	}
	return 0
}

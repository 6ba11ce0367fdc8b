package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The keys of requests. No answer may contain one of them.
const (
	theKey    = "account-secret"
	secondKey = "user-secret"
)

// foreignToken is the token of another process that holds a key.
const foreignToken = "token-of-another"

// shortWait is the wait of requests for a key that stays locked. Redis has to answer within it,
// also on a busy machine: otherwise the refusal is that of an unavailable Redis.
const shortWait = 1500 * time.Millisecond

// plain is the request that most cases send.
var plain = request{keys: []string{theKey}, second: secondKey, body: theKey}

// An environment serves one case on one framework. Its Locker has its own prefix and
// reaches Redis through its own proxy.
type environment struct {
	*testing.T
	f         *framework
	redis     *redistest.Deployment
	locks     *core.Locker
	events    *events
	proxy     *redistest.Proxy
	rdb       redis.UniversalClient // not through the proxy
	prefix    string
	ownTokens string // the prefix of the Locker's tokens
}

// newEnvironment returns an environment on the servers. It fails the test if the case leaves
// a lock.
func newEnvironment(t *testing.T, f *framework, servers *redistest.Deployment) *environment {
	t.Helper()
	e := &environment{
		T: t, f: f, redis: servers,
		events: newEvents(),
		proxy:  servers.Proxy(t),
		rdb:    servers.Client(t),
		prefix: redistest.OwnPrefix(),
	}
	e.locks = core.Must(core.New(e.connect(e.proxy), busyMachine(
		core.WithPrefix(e.prefix), core.WithObserver(e.events.observe), core.WithProblemType(problemType))...))
	t.Cleanup(e.close)

	lease, err := e.locks.TryLock(t.Context(), "first")
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	e.ownTokens, _, _ = strings.Cut(lease.Token(), ":")
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
	e.events.forget()
	return e
}

// busyMachine adds the options with which the delays of a busy machine are no fault of Redis. A
// command may take a quarter of the TTL.
func busyMachine(opts ...core.Option) []core.Option {
	return append([]core.Option{core.WithTTL(20 * time.Second), core.WithCommandTimeout(5 * time.Second)}, opts...)
}

// connect returns a client behind the proxy. The client is connected to each master, so that
// a short wait does not include the time to connect.
func (e *environment) connect(proxy *redistest.Proxy) redis.UniversalClient {
	e.Helper()
	rdb := e.redis.Client(e.T, redistest.Through(proxy))
	err := redistest.EachMaster(e.Context(), rdb, func(master redis.Cmdable) error {
		return master.Ping(e.Context()).Err()
	})
	if err != nil {
		e.Fatalf("PING: %v", err)
	}
	return rdb
}

// close closes the Locker. It fails the test if a lock is left, or a key without a TTL. The
// HTTP and gRPC servers of the case have ended before.
func (e *environment) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.proxy.Refuse(false)
	if err := e.locks.Close(ctx); err != nil {
		e.Errorf("Close: a lock was not released: %v", err)
	}
	for _, name := range e.names(ctx, "") {
		if token := e.rdb.Get(ctx, name).Val(); strings.HasPrefix(token, e.ownTokens) {
			e.Errorf("%s is still locked", name)
		}
		if e.rdb.TTL(ctx, name).Val() == -1 {
			e.Errorf("%s has no TTL", name)
		}
	}
}

// names returns the Redis keys of the case that end with the suffix. It may be called from
// any goroutine.
func (e *environment) names(ctx context.Context, suffix string) []string {
	e.Helper()
	names, err := redistest.Keys(ctx, e.rdb, "*"+e.prefix+"*"+suffix)
	if err != nil {
		e.Errorf("KEYS: %v", err)
	}
	return names
}

// held reports whether a key is locked. It may be called from any goroutine.
func (e *environment) held(key string) bool {
	e.Helper()
	n, err := e.rdb.Exists(context.Background(), e.prefix+key).Result()
	if err != nil {
		e.Errorf("EXISTS: %v", err)
	}
	return n == 1
}

// take locks a key as another process does.
func (e *environment) take(key string) {
	e.Helper()
	err := e.rdb.SetArgs(e.Context(), e.prefix+key, foreignToken, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err()
	if err != nil {
		e.Fatalf("SET NX: %v", err)
	}
}

// loseLease deletes a lock until the context of its holder ends. It may be called from any
// goroutine.
func (e *environment) loseLease(held context.Context, key string) {
	e.Helper()
	redistest.LoseAnywhere(e.T, e.rdb, "the context of the holder ends", held.Done(), e.prefix+key)
}

// free deletes a lock, regardless of its holder. It may be called from any goroutine.
func (e *environment) free(key string) {
	e.Helper()
	if err := e.rdb.Del(context.Background(), e.prefix+key).Err(); err != nil {
		e.Errorf("DEL: %v", err)
	}
}

// serve serves a route. If the route has no handler, a request that is not refused fails the
// test.
func (e *environment) serve(r route) *routeClient {
	e.Helper()
	if r.handler == nil {
		r.handler = func(call) { e.Error("the handler has run") }
	}
	return &routeClient{e, e.f.serve(e.T, e.locks, r)}
}

// A routeClient is a client of a served route. It fails the test if an answer contains a key
// or a token.
type routeClient struct {
	*environment
	server
}

// send sends a request and reads the answer.
func (s *routeClient) send(ctx context.Context, r request) answer {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*patience) // a handler may need the patience itself
	defer cancel()
	got := s.server.send(ctx, r)
	s.checkSecrets(got)
	return got
}

// checkSecrets fails the test if an answer contains a key or a token.
func (s *routeClient) checkSecrets(got answer) {
	s.Helper()
	for _, keyPrefix := range []string{theKey, secondKey, foreignToken, s.ownTokens} {
		if strings.Contains(got.raw, keyPrefix) {
			s.Errorf("the answer contains a key or a token: %s", got.raw)
		}
	}
}

// wantReply sends a request. It fails the test unless the handler answers with the text.
func (s *routeClient) wantReply(r request, text string) {
	s.Helper()
	if got := s.send(s.Context(), r); !got.ok || got.text != text {
		s.Errorf("the answer is %+v, not %q", got, text)
	}
}

// wantRefusal sends a request that has to be refused with the outcome. Otherwise it ends the
// test, because later steps would wait for a lock in another state.
func (s *routeClient) wantRefusal(r request, want outcome) answer {
	s.Helper()
	got := s.send(s.Context(), r)
	switch {
	case got.ok || got.err != nil:
		s.Fatalf("not refused: %+v", got)
	case got.outcome != want:
		s.Fatalf("refused with %+v, not %+v: %s", got.outcome, want, got.raw)
	}
	return got
}

// says reports whether an answer contains a text, in the framework's form.
func says(got answer, text string) bool { return strings.Contains(got.raw, text) }

// defaultRetryAfter is core's default Retry-After.
const defaultRetryAfter = time.Second

// rowOf returns the framework's form of an error.
func (e *environment) rowOf(err error) outcome {
	e.Helper()
	outcome, ok := core.RefusalOf(err)
	if !ok {
		e.Fatalf("%v is no outcome", err)
	}
	return e.f.row(outcome)
}

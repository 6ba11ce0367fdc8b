package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The keys of requests. No answer may hold one of them.
const (
	theKey    = "account-secret"
	secondKey = "user-secret"
)

// theirToken is the token of another process that holds a key.
const theirToken = "token-of-another"

// shortWait is the wait of requests that are to wait in vain. Within it Redis has
// to answer, on a busy machine too: else it is Redis that was waited for.
const shortWait = 1500 * time.Millisecond

// plain is the request that most cases send.
var plain = request{keys: []string{theKey}, second: secondKey, body: theKey}

// An env is what one case on one framework runs in: a Locker of its own, under
// a prefix of its own, that reaches Redis through a proxy of its own.
type env struct {
	*testing.T
	f      *framework
	redis  *redistest.Deployment
	locks  *core.Locker
	events *events
	proxy  *redistest.Proxy
	rdb    redis.UniversalClient // past the proxy
	prefix string
	ours   string // how the tokens of locks begin
}

// prefixes counts the Lockers, to keep their keys apart.
var prefixes atomic.Int64

// newEnv makes an env on the servers. When the case is over, it must have left
// no lock behind.
func newEnv(t *testing.T, f *framework, servers *redistest.Deployment) *env {
	t.Helper()
	e := &env{
		T: t, f: f, redis: servers,
		events: newEvents(),
		proxy:  servers.Proxy(t),
		rdb:    servers.Client(t),
		prefix: fmt.Sprintf("case%d:", prefixes.Add(1)),
	}
	e.locks = core.Must(core.New(e.connect(e.proxy),
		core.WithPrefix(e.prefix),
		core.WithObserver(e.events.observe),
		core.WithCommandTimeout(2*time.Second), // a busy machine is no fault of Redis
	))
	t.Cleanup(e.close)

	lease, err := e.locks.TryLock(t.Context(), "first")
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	e.ours, _, _ = strings.Cut(lease.Token(), ":")
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
	e.events.forget()
	return e
}

// connect returns a client behind the proxy. Its connections, one to each master,
// are made now, so that a short wait is one for the lock.
func (e *env) connect(proxy *redistest.Proxy) redis.UniversalClient {
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

// close ends the Locker and sees that no lock is left, and nothing that lives for
// ever. The servers of the case have ended before.
func (e *env) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.proxy.Refuse(false)
	if err := e.locks.Close(ctx); err != nil {
		e.Errorf("Close: a lock was not released: %v", err)
	}
	for _, name := range e.names(ctx, "") {
		if token := e.rdb.Get(ctx, name).Val(); strings.HasPrefix(token, e.ours) {
			e.Errorf("%s is still locked", name)
		}
		if e.rdb.TTL(ctx, name).Val() == -1 {
			e.Errorf("%s lives for ever", name)
		}
	}
}

// names returns the names in Redis of all that belongs to the case, of those that
// end with suffix. It may be called from any goroutine.
func (e *env) names(ctx context.Context, suffix string) []string {
	e.Helper()
	names, err := redistest.Keys(ctx, e.rdb, "*"+e.prefix+"*"+suffix)
	if err != nil {
		e.Errorf("KEYS: %v", err)
	}
	return names
}

// held reports whether a key is locked. It may be called from any goroutine.
func (e *env) held(key string) bool {
	e.Helper()
	n, err := e.rdb.Exists(context.Background(), e.prefix+key).Result()
	if err != nil {
		e.Errorf("EXISTS: %v", err)
	}
	return n == 1
}

// take locks a key as another process does.
func (e *env) take(key string) {
	e.Helper()
	err := e.rdb.SetArgs(e.Context(), e.prefix+key, theirToken, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err()
	if err != nil {
		e.Fatalf("SET NX: %v", err)
	}
}

// free deletes a key, whoever holds it. It may be called from any goroutine.
func (e *env) free(key string) {
	e.Helper()
	if err := e.rdb.Del(context.Background(), e.prefix+key).Err(); err != nil {
		e.Errorf("DEL: %v", err)
	}
}

// serve serves a route. Without a handler the route's handler must not run.
func (e *env) serve(r route) *site {
	e.Helper()
	if r.handler == nil {
		r.handler = func(call) { e.Error("the handler has run") }
	}
	return &site{e, e.f.serve(e.T, e.locks, r)}
}

package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The times of the tests' requests are far enough apart to be told from each
// other on a slow machine.
const (
	ttl      = 3 * time.Minute
	claim    = 30 * time.Second
	lineLife = time.Minute // see line.lua
	keep     = time.Hour   // of a record
)

// The processes of the tests, and their tokens.
var (
	me, bob, eve   = strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	me1, me2       = me + ":1", me + ":2"
	bob1, bob2     = bob + ":1", bob + ":2"
	eve1           = eve + ":1"
	theLock        = "p:k"
	theLine        = "{p:k}:q"
	theFence       = "{p:k}:f"
	theRecord      = "{p:k}:r"
	processChannel = "p:" + me
)

// request returns a request for the key k that joins the line.
func request(token string) store.Request {
	return store.Request{Key: "k", Token: token, TTL: ttl, Claim: claim, Bound: 5 * time.Second, Join: true, Look: true}
}

// newStore returns a store of the process me. What it left behind ends with
// the test.
func newStore(t *testing.T, rdb redis.UniversalClient) *syncStore {
	t.Helper()
	return newStoreOf(t, rdb, me)
}

func newStoreOf(t *testing.T, rdb redis.UniversalClient, process string) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", process, Replicas{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &syncStore{Store: s}
}

// syncStore is a store whose transitions return their answers.
type syncStore struct {
	*Store
	alone bool // release as if nobody were known to wait
}

func (s *syncStore) Take(_ context.Context, r store.Request) (store.Answer, error) {
	return await(func(done func(store.Answer, error)) { s.Store.Take(r, done) })
}

func (s *syncStore) Enqueue(_ context.Context, r store.Request) (store.Answer, error) {
	return await(func(done func(store.Answer, error)) { s.Store.Enqueue(r, done) })
}

func (s *syncStore) Renew(_ context.Context, r store.Request) (store.Renewal, error) {
	return await(func(done func(store.Renewal, error)) { s.Store.Renew(r, done) })
}

func (s *syncStore) Release(_ context.Context, r store.Request) (store.Released, error) {
	r.Alone = r.Alone || s.alone
	return await(func(done func(store.Released, error)) { s.Store.Release(r, done) })
}

func (s *syncStore) Resolve(_ context.Context, r store.Request) (running bool, err error) {
	return await(func(done func(bool, error)) { s.Store.Resolve(r, done) })
}

// await returns what a transition was answered.
func await[T any](do func(done func(T, error))) (T, error) {
	type result struct {
		answer T
		err    error
	}
	answered := make(chan result, 1)
	do(func(answer T, err error) { answered <- result{answer, err} })
	r := <-answered
	return r.answer, r.err
}

// onEachServer runs the test on real servers of each kind, but for some, and on
// the embedded one. Where they differ, the real one is right.
func onEachServer(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient), but ...redistest.Kind) {
	t.Helper()
	for _, kind := range redistest.Kinds() {
		if !slices.Contains(but, kind) {
			t.Run(kind.String(), func(t *testing.T) { test(t, kind.Start(t).Client(t)) })
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, rdb)
	})
}

// state is what a test puts into the lock and its line beforehand, or finds in
// them afterwards.
type state struct {
	value string        // "" is no key
	ttl   time.Duration // 0 is no end
	line  []string
	// lineTTL is lineLife where it is not given.
	lineTTL time.Duration
	// record is the hash, whose life is keep where it is not given.
	record    map[string]string
	recordTTL time.Duration
}

func (s state) lineLives() time.Duration { return cmp.Or(s.lineTTL, lineLife) }

func (s state) recordLives() time.Duration { return cmp.Or(s.recordTTL, keep) }

func (s state) put(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	pipe := rdb.TxPipeline()
	pipe.Del(t.Context(), theLock, theLine, theFence, theRecord)
	if s.value != "" {
		pipe.Set(t.Context(), theLock, s.value, s.ttl)
	}
	for _, token := range s.line {
		pipe.RPush(t.Context(), theLine, token)
	}
	pipe.PExpire(t.Context(), theLine, s.lineLives())
	if s.record != nil {
		pipe.HSet(t.Context(), theRecord, s.record)
		pipe.PExpire(t.Context(), theRecord, s.recordLives())
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s state) check(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	value, _ := rdb.Get(t.Context(), theLock).Result()
	left := rdb.PTTL(t.Context(), theLock).Val()
	if value != s.value || (value != "" && !isLife(left, s.ttl)) {
		t.Errorf("the lock is %q for %v, want %q for %v", value, left, s.value, s.ttl)
	}
	line := rdb.LRange(t.Context(), theLine, 0, -1).Val()
	left = rdb.PTTL(t.Context(), theLine).Val()
	if !slices.Equal(line, s.line) || (len(line) > 0 && !isLife(left, s.lineLives())) {
		t.Errorf("the line is %q for %v, want %q for %v", line, left, s.line, s.lineLives())
	}
	record := rdb.HGetAll(t.Context(), theRecord).Val()
	left = rdb.PTTL(t.Context(), theRecord).Val()
	if !maps.Equal(record, s.record) || (len(record) > 0 && !isLife(left, s.recordLives())) {
		t.Errorf("the record is %q for %v, want %q for %v", record, left, s.record, s.recordLives())
	}
}

// isLife reports whether a key that lives for left began with want a moment
// ago; a want of zero is no end.
func isLife(left, want time.Duration) bool {
	if want <= 0 {
		return left < 0
	}
	return left <= want+time.Millisecond && left > want-10*time.Second
}

// An audit hears what is said to some processes, as they would.
type audit struct {
	sharded bool
	conns   map[string]*redis.PubSub // by their channels
}

func listenAs(t *testing.T, rdb redis.UniversalClient, processes ...string) audit {
	t.Helper()
	return listenInMode(t, rdb, "P", processes...)
}

// listenInMode listens where the scripts say it to the processes, in their mode.
func listenInMode(t *testing.T, rdb redis.UniversalClient, mode string, processes ...string) audit {
	t.Helper()
	a := audit{sharded: mode == "S", conns: make(map[string]*redis.PubSub)}
	for _, process := range processes {
		channel, listen := "p:"+process, rdb.Subscribe
		if a.sharded {
			channel, listen = "{p:k}:"+process, rdb.SSubscribe
		}
		conn := listen(t.Context(), channel)
		t.Cleanup(func() { _ = conn.Close() }) // where the test fails, or the next one would wait until it has gone
		if _, err := conn.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.conns[channel] = conn
	}
	return a
}

// heard ends the audit and returns what was said.
func (a audit) heard(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	say, left := rdb.Publish, redis.Cmdable.PubSubChannels
	if a.sharded {
		say, left = rdb.SPublish, redis.Cmdable.PubSubShardChannels
	}
	var said []string
	for channel, conn := range a.conns {
		say(t.Context(), channel, "end")
		for {
			m, err := conn.ReceiveMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.Payload == "end" {
				break
			}
			said = append(said, m.Payload)
		}
		_ = conn.Close()
	}
	// A process that has gone is counted until its server has noticed.
	for stay := true; stay; {
		stay = false
		err := redistest.EachMaster(t.Context(), rdb, func(master redis.Cmdable) error {
			channels, err := left(master, t.Context(), "*p:*").Result()
			stay = stay || len(channels) > 0
			return err
		})
		if err != nil {
			t.Fatalf("the listeners stay: %v", err)
		}
	}
	return said
}

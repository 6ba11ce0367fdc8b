package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ttl is the TTL of the tests' requests.
const ttl = time.Minute

// request returns a request for the key k.
func request(token string) store.Request {
	return store.Request{Key: "k", Token: token, TTL: ttl, Bound: 5 * time.Second}
}

// newStore returns a store whose left-behind commands end with the test.
func newStore(t *testing.T, rdb redis.UniversalClient) *Store {
	t.Helper()
	s, err := New(rdb, "p:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// onEachServer runs the test on a real server and on the embedded one. Where
// they differ, the real one is right.
func onEachServer(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { test(t, redistest.Start(t).Client(t)) })
	t.Run("miniredis", func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, rdb)
	})
}

// life is what a test puts in the key beforehand, or finds in it afterwards.
type life struct {
	value string // "" is no key
	ttl   time.Duration
}

func (l life) put(t *testing.T, rdb *redis.Client) {
	t.Helper()
	rdb.Del(t.Context(), "p:k")
	if l.value != "" {
		if err := rdb.Set(t.Context(), "p:k", l.value, l.ttl).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func (l life) check(t *testing.T, rdb *redis.Client) {
	t.Helper()
	value, _ := rdb.Get(t.Context(), "p:k").Result()
	left := rdb.PTTL(t.Context(), "p:k").Val()
	if l.ttl == 0 && value != "" && left != -1 {
		t.Errorf("key lives for %v, want no end", left)
	}
	if value != l.value || (l.ttl > 0 && (left > l.ttl || left < l.ttl-5*time.Second)) {
		t.Errorf("key is %q for %v, want %q for %v", value, left, l.value, l.ttl)
	}
}

func TestTransitions(t *testing.T) {
	type answer struct {
		granted, held bool
		holder        string
		remaining     time.Duration
	}
	acquire := func(do func(*Store) func(context.Context, store.Request) (store.Answer, error)) func(*testing.T, *Store) answer {
		return func(t *testing.T, s *Store) answer {
			t.Helper()
			sent := time.Now()
			got, err := do(s)(t.Context(), request("me:1"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Granted && (got.Since.Before(sent) || time.Since(got.Since) < 0) {
				t.Errorf("granted since %v, sent at %v", got.Since, sent)
			}
			return answer{granted: got.Granted, holder: got.Holder, remaining: got.Remaining.Round(time.Minute)}
		}
	}
	take := acquire(func(s *Store) func(context.Context, store.Request) (store.Answer, error) { return s.Take })
	takeOld := func(t *testing.T, s *Store) answer {
		t.Helper()
		s.oldServer.Store(true)
		return take(t, s)
	}
	ask := acquire(func(s *Store) func(context.Context, store.Request) (store.Answer, error) { return s.Ask })
	renew := func(t *testing.T, s *Store) answer {
		t.Helper()
		_, held, err := s.Renew(t.Context(), request("me:1"))
		if err != nil {
			t.Fatal(err)
		}
		return answer{held: held}
	}
	release := func(t *testing.T, s *Store) answer {
		t.Helper()
		held, err := s.Release(t.Context(), request("me:1"))
		if err != nil {
			t.Fatal(err)
		}
		return answer{held: held}
	}
	none, mine, short, long := life{}, life{"me:1", ttl}, life{"me:1", 10 * time.Second}, life{"me:1", time.Hour}
	others, endless := life{"other", time.Hour}, life{"other", 0}
	tests := []struct {
		name          string
		do            func(*testing.T, *Store) answer
		before        life
		first, second answer // the call is sent twice
		after         life
	}{
		{"take a free key", take, none, answer{granted: true}, answer{granted: true}, mine},
		{"take our own key: its life is not raised", take, short, answer{granted: true}, answer{granted: true}, short},
		{"take another's key", take, others, answer{holder: "other"}, answer{holder: "other"}, others},
		{"take, old server, a free key", takeOld, none, answer{granted: true}, answer{granted: true}, mine},
		{"take, old server, our own key", takeOld, short, answer{granted: true}, answer{granted: true}, short},
		{"take, old server, another's key", takeOld, others, answer{holder: "other"}, answer{holder: "other"}, others},
		{"ask for a free key", ask, none, answer{granted: true}, answer{granted: true}, mine},
		{"ask for our own key: a full life", ask, short, answer{granted: true}, answer{granted: true}, mine},
		{"ask for our own key: never shorter", ask, long, answer{granted: true}, answer{granted: true}, long},
		{
			"ask for another's key", ask, others,
			answer{holder: "other", remaining: time.Hour},
			answer{holder: "other", remaining: time.Hour},
			others,
		},
		{"ask for a key without an end", ask, endless, answer{holder: "other"}, answer{holder: "other"}, endless},
		{"renew our key", renew, short, answer{held: true}, answer{held: true}, mine},
		{"renew our key: never shorter", renew, long, answer{held: true}, answer{held: true}, long},
		{"renew another's key", renew, others, answer{}, answer{}, others},
		{"renew no key: not created", renew, none, answer{}, answer{}, none},
		{"release our key", release, mine, answer{held: true}, answer{}, none},
		{"release another's key", release, others, answer{}, answer{}, others},
		{"release no key", release, none, answer{}, answer{}, none},
	}
	onEachServer(t, func(t *testing.T, rdb *redis.Client) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				s := newStore(t, rdb)
				test.before.put(t, rdb)
				if got := test.do(t, s); got != test.first {
					t.Errorf("first: %+v, want %+v", got, test.first)
				}
				if got := test.do(t, s); got != test.second {
					t.Errorf("second: %+v, want %+v", got, test.second)
				}
				test.after.check(t, rdb)
			})
		}
	})
}

func TestAnEndlessHolderHasANegativeRest(t *testing.T) {
	onEachServer(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		life{"other", 0}.put(t, rdb)
		if got, err := s.Ask(t.Context(), request("me:1")); err != nil || got.Remaining >= 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// withoutSetNXGet answers as a server before Redis 7 does.
type withoutSetNXGet struct{ refused int }

func (*withoutSetNXGet) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*withoutSetNXGet) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *withoutSetNXGet) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "set" {
			h.refused++
			err := serverError("ERR syntax error")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// serverError is an error as go-redis reports one that the server sent.
type serverError string

func (e serverError) Error() string { return string(e) }

func (serverError) RedisError() {}

func TestAnOldServerIsAskedByScriptFromThenOn(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	hook := &withoutSetNXGet{}
	rdb.AddHook(hook)
	s := newStore(t, rdb)
	for i, want := range []bool{true, true, false} {
		token := "me:1"
		if i == 2 {
			token = "me:2"
		}
		if got, err := s.Take(t.Context(), request(token)); err != nil || got.Granted != want {
			t.Errorf("take %d: %+v, %v", i, got, err)
		}
	}
	if hook.refused != 1 {
		t.Errorf("the native command was tried %d times", hook.refused)
	}
}

func TestScriptsComeBackAfterAFlush(t *testing.T) {
	onEachServer(t, func(t *testing.T, rdb *redis.Client) {
		s := newStore(t, rdb)
		for range 2 {
			if got, err := s.Ask(t.Context(), request("me:1")); err != nil || !got.Granted {
				t.Errorf("ask: %+v, %v", got, err)
			}
			if _, held, err := s.Renew(t.Context(), request("me:1")); err != nil || !held {
				t.Errorf("renew: %v, %v", held, err)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if held, err := s.Release(t.Context(), request("me:1")); err != nil || !held {
				t.Errorf("release: %v, %v", held, err)
			}
		}
	})
}

func TestTheLastMillisecondOfAHolderIsKnown(t *testing.T) {
	for pttl, want := range map[int64]time.Duration{0: time.Millisecond, 1: 2 * time.Millisecond, -1: -1} {
		answer, err := decodeAsk(reply{value: []any{int64(0), "other", pttl}})
		if err != nil || answer.Remaining != want {
			t.Errorf("PTTL %d: %v, %v", pttl, answer.Remaining, err)
		}
	}
}

func TestNothingOfAForeignReplyIsBelieved(t *testing.T) {
	odd := reply{value: []any{int64(2), "x"}}
	if _, err := decodeAsk(odd); err == nil {
		t.Error("an odd reply to ask was believed")
	}
	if _, err := decodeHeld(odd, &exchange{}); err == nil {
		t.Error("an odd reply to renew was believed")
	}
	if _, err := decodeAsk(reply{value: []any{int64(0), int64(1), "x"}}); err == nil {
		t.Error("swapped fields were believed")
	}
}

func TestErrorsCarryNoTokenAndNoKey(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb)
	if err := rdb.RPush(t.Context(), "p:k", "x").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Take(t.Context(), request("secret:1"))
	var fault *store.Fault
	if !errors.As(err, &fault) || fault.Passing || fault.Unknown || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		t.Errorf("take of a list: %#v", err)
	}
	if _, err := s.Ask(t.Context(), request("secret:1")); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "p:k") {
		t.Errorf("ask of a list: %v", err)
	}
}

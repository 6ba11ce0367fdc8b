package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/tally"
)

// Store speaks the lock's wire protocol with one Redis. It implements
// store.Store and is safe for concurrent use.
type Store struct {
	rdb     redis.UniversalClient
	names   names
	scripts scripts
	hint    func(key, token string)
	sends   tally.Tally
	// oldServer is set once the server turned out to be older than Redis 7,
	// which introduced SET with both NX and GET.
	oldServer atomic.Bool
}

var _ store.Store = (*Store)(nil)

// New returns a Store that sends through rdb and writes every key behind the
// prefix. It does no I/O. It refuses a prefix with half a hash tag.
func New(rdb redis.UniversalClient, prefix string) (*Store, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	return &Store{rdb: rdb, names: names{prefix}, scripts: newScripts()}, nil
}

// OnHint registers the function that hears of late wins.
func (s *Store) OnHint(hint func(key, token string)) { s.hint = hint }

// Close waits for commands that were left behind.
func (s *Store) Close(ctx context.Context) error { return s.sends.Wait(ctx) }

// Take sends SET NX GET, or its stand-in on servers before Redis 7. Nil or our
// own token means held.
func (s *Store) Take(ctx context.Context, r store.Request) (store.Answer, error) {
	name := s.names.lock(r.Key)
	begun := time.Now()
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) { return s.take(ctx, name, r) })
	s.watchLate(x, r.Key, r.Token, func(late reply) bool { return late.err == nil && holds(late.value, r.Token) })
	if got.err != nil {
		return store.Answer{}, newFault(got.err, x)
	}
	switch value := got.value.(type) {
	case nil:
		return store.Answer{Granted: true, Since: got.sent}, nil
	case string:
		if value == r.Token {
			return store.Answer{Granted: true, Since: begun}, nil // an earlier send set it
		}
		return store.Answer{Holder: value}, nil
	default:
		return store.Answer{}, &store.Fault{Unknown: true, Err: errShape(value)}
	}
}

// take sends the native command, and falls back for good when the server does
// not know its form.
func (s *Store) take(ctx context.Context, name string, r store.Request) (any, error) {
	ttl := r.TTL.Milliseconds()
	if !s.oldServer.Load() {
		value, err := sendOnce(ctx, s.rdb, 1, "set", name, r.Token, "nx", "get", "px", ttl)
		if err == nil || !strings.HasPrefix(err.Error(), "ERR syntax error") {
			return value, err
		}
		s.oldServer.Store(true)
	}
	return s.scripts.take.run(ctx, s.rdb, name, r.Token, ttl)
}

// holds reports whether a reply to take says that the token holds the key.
func holds(value any, token string) bool { return value == nil || value == token }

// Ask runs ask.lua.
func (s *Store) Ask(ctx context.Context, r store.Request) (store.Answer, error) {
	name := s.names.lock(r.Key)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.ask.run(ctx, s.rdb, name, r.Token, r.TTL.Milliseconds())
	})
	s.watchLate(x, r.Key, r.Token, func(late reply) bool {
		answer, err := decodeAsk(late)
		return err == nil && answer.Granted
	})
	if got.err != nil {
		return store.Answer{}, newFault(got.err, x)
	}
	answer, err := decodeAsk(got)
	if err != nil {
		return store.Answer{}, &store.Fault{Unknown: true, Err: err}
	}
	return answer, nil
}

// decodeAsk reads the answer of ask.lua.
func decodeAsk(r reply) (store.Answer, error) {
	if r.err != nil {
		return store.Answer{}, r.err
	}
	fields, _ := r.value.([]any)
	switch {
	case len(fields) == 1 && fields[0] == int64(1):
		return store.Answer{Granted: true, Since: r.sent}, nil
	case len(fields) == 3 && fields[0] == int64(0):
		holder, isText := fields[1].(string)
		remaining, isNumber := fields[2].(int64)
		if isText && isNumber {
			return store.Answer{Holder: holder, Remaining: lifeOf(remaining)}, nil
		}
	}
	return store.Answer{}, errShape(r.value)
}

// lifeOf returns how long a key of this PTTL lives at most. The server rounds
// down, so the last millisecond reads as 0.
func lifeOf(pttl int64) time.Duration {
	if pttl < 0 {
		return -1
	}
	return time.Duration(pttl+1) * time.Millisecond
}

// Renew runs renew.lua.
func (s *Store) Renew(ctx context.Context, r store.Request) (time.Time, bool, error) {
	name := s.names.lock(r.Key)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.renew.run(ctx, s.rdb, name, r.Token, r.TTL.Milliseconds())
	})
	held, err := decodeHeld(got, x)
	return got.sent, held, err
}

// Release runs release.lua. A token that is gone at the second send may have
// been freed by the first one: that is a release, not a loss.
func (s *Store) Release(ctx context.Context, r store.Request) (bool, error) {
	name := s.names.lock(r.Key)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.release.run(ctx, s.rdb, name, r.Token)
	})
	held, err := decodeHeld(got, x)
	return held || (err == nil && x.uncertain()), err
}

// decodeHeld reads the 1 or 0 of renew.lua and release.lua.
func decodeHeld(r reply, x *exchange) (bool, error) {
	if r.err != nil {
		return false, newFault(r.err, x)
	}
	switch r.value {
	case int64(1):
		return true, nil
	case int64(0):
		return false, nil
	default:
		return false, &store.Fault{Unknown: true, Err: fmt.Errorf("script: %w", errShape(r.value))}
	}
}

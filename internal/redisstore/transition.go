package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Take sends SET NX GET, or its stand-in on servers before Redis 7. Nil or our
// own token means held.
func (s *Store) Take(ctx context.Context, r store.Request) (store.Answer, error) {
	name := s.names.lock(r.Key)
	begun := time.Now()
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) { return s.take(ctx, name, r) })
	s.watchLate(x, r.Key, r.Token, func(late reply) bool {
		answer, err := decodeTake(late, r, begun)
		return err == nil && answer.Granted
	})
	answer, err := decodeTake(got, r, begun)
	if err != nil {
		return store.Answer{}, newFault(err, x)
	}
	return answer, nil
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
	return s.scripts.take.run(ctx, s.rdb, []string{name}, r.Token, ttl)
}

// Enqueue runs enqueue.lua.
func (s *Store) Enqueue(ctx context.Context, r store.Request) (store.Answer, error) {
	join := 0
	if r.Join {
		join = 1
	}
	keys := s.names.fenced(r.Key, r.Fences)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.enqueue.run(ctx, s.rdb, keys, s.lineArgs(r, join, r.Fences)...)
	})
	s.watchLate(x, r.Key, r.Token, func(late reply) bool {
		answer, err := decodeEnqueue(late, r)
		return err == nil && answer.Granted
	})
	answer, err := decodeEnqueue(got, r)
	if err != nil {
		return store.Answer{}, newFault(err, x)
	}
	return answer, nil
}

// Renew runs renew.lua.
func (s *Store) Renew(ctx context.Context, r store.Request) (store.Renewal, error) {
	keys := s.names.fenced(r.Key, r.Fences)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.renew.run(ctx, s.rdb, keys, r.Token, r.TTL.Milliseconds(), r.Fences)
	})
	renewal, err := decodeRenew(got, r)
	if err != nil {
		return store.Renewal{}, newFault(err, x)
	}
	return renewal, nil
}

// Release runs release.lua. A token that is gone at the second send may have
// been released by the first one: then it is not known what became of the key.
func (s *Store) Release(ctx context.Context, r store.Request) (store.Released, error) {
	keys := s.names.fenced(r.Key, 0)
	got, x := s.exchange(ctx, r.Bound, func(ctx context.Context) (any, error) {
		return s.scripts.release.run(ctx, s.rdb, keys, s.lineArgs(r, r.Rejoin)...)
	})
	s.watchLate(x, r.Key, r.Rejoin, func(late reply) bool {
		released, err := decodeRelease(late, r)
		return err == nil && released.End == store.Kept
	})
	released, err := decodeRelease(got, r)
	if err != nil {
		return store.Released{}, newFault(err, x)
	}
	if released.End == store.NotHeld && x.uncertain() {
		released.End = store.Unsure
	}
	return released, nil
}

// lineArgs lays out the arguments of a script that works on the line: those
// that line.lua names, and the script's own.
func (s *Store) lineArgs(r store.Request, own ...any) []any {
	return append([]any{
		r.Token, r.TTL.Milliseconds(), r.Claim.Milliseconds(), s.names.prefix, s.mode,
	}, own...)
}

package storetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// State is the state of the lock k in Redis, before or after a transition.
type State struct {
	Value     string            // of the lock; "" means that there is no key
	TTL       time.Duration     // of the lock; 0 means that it has no TTL
	Queue     []string          // the tokens of the waiters
	QueueTTL  time.Duration     // 0 means the constant QueueTTL
	Record    map[string]string // the fields of record.lua; nil means that there is no record
	RecordTTL time.Duration     // 0 means Keep
	// Shared has the tokens of the shared leases, and when they end from now. The Value is
	// Marker then.
	Shared map[string]time.Duration
}

// Marker is the value of a lock while shared leases are out, before a fencing number was
// wanted and a token has waited.
const Marker = "shared 0 - 0"

func (s State) queueTTL() time.Duration { return cmp.Or(s.QueueTTL, QueueTTL) }

// WantRecordTTL returns the TTL of the record: RecordTTL, or Keep.
func (s State) WantRecordTTL() time.Duration { return cmp.Or(s.RecordTTL, Keep) }

// Put replaces the keys of the lock by the state.
func (s State) Put(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	s.PutAt(t, rdb, LockName)
	rdb.Del(t.Context(), FenceName)
}

// PutAt replaces the keys of another lock, except the fence, by the state.
func (s State) PutAt(t *testing.T, rdb redis.UniversalClient, lock string) {
	t.Helper()
	queue, record, shared := "{"+lock+"}:q", "{"+lock+"}:r", "{"+lock+"}:s"
	pipe := rdb.TxPipeline()
	pipe.Del(t.Context(), lock, queue, record, shared)
	if s.Value != "" {
		pipe.Set(t.Context(), lock, s.Value, s.TTL)
	}
	for _, token := range s.Queue {
		pipe.RPush(t.Context(), queue, token)
	}
	pipe.PExpire(t.Context(), queue, s.queueTTL())
	if s.Record != nil {
		PutRecord(t.Context(), pipe, record, s.Record, s.WantRecordTTL())
	}
	s.PutShared(t.Context(), pipe, shared)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// PutShared adds the shared leases to a set.
func (s State) PutShared(ctx context.Context, pipe redis.Pipeliner, set string) {
	for token, left := range s.Shared {
		ends := time.Now().Add(left)
		pipe.ZAdd(ctx, set, redis.Z{Score: float64(ends.UnixMilli()), Member: token})
		pipe.PExpireAt(ctx, set, ends.Add(s.TTL))
	}
}

// SharedOf returns the members of a set as shared leases.
func SharedOf(members []redis.Z) map[string]time.Duration {
	shared := make(map[string]time.Duration, len(members))
	for _, member := range members {
		token, _ := member.Member.(string)
		shared[token] = time.Until(time.UnixMilli(int64(member.Score)))
	}
	return shared
}

// HasShared reports whether these are the shared leases of the state.
func (s State) HasShared(found map[string]time.Duration) bool {
	for token, left := range found {
		if want, isKnown := s.Shared[token]; !isKnown || !IsTTL(left, want) {
			return false
		}
	}
	return len(found) == len(s.Shared)
}

// Check fails the test unless the keys of the lock have the state.
func (s State) Check(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	if found := FoundAt(t, rdb, LockName); !s.Is(found) {
		t.Errorf("the state is\n%+v, want\n%+v", found, s)
	}
}

// FoundAt returns the state of a lock in Redis. Its times are those that are left.
func FoundAt(t *testing.T, rdb redis.UniversalClient, lock string) State {
	t.Helper()
	queue, record, shared := "{"+lock+"}:q", "{"+lock+"}:r", "{"+lock+"}:s"
	pipe := rdb.Pipeline()
	value, ttl := pipe.Get(t.Context(), lock), pipe.PTTL(t.Context(), lock)
	tokens, queueTTL := pipe.LRange(t.Context(), queue, 0, -1), pipe.PTTL(t.Context(), queue)
	recordTTL := pipe.PTTL(t.Context(), record)
	leases, sharedTTL := pipe.ZRangeWithScores(t.Context(), shared, 0, -1), pipe.PTTL(t.Context(), shared)
	_, _ = pipe.Exec(t.Context()) // fails if there is no lock
	if len(leases.Val()) > 0 && sharedTTL.Val() < 0 {
		t.Errorf("the set of shared leases has the TTL %v", sharedTTL.Val())
	}
	return State{
		Value: value.Val(), TTL: ttl.Val(), Queue: tokens.Val(), QueueTTL: queueTTL.Val(),
		Record: RecordAt(t, rdb, record), RecordTTL: recordTTL.Val(), Shared: SharedOf(leases.Val()),
	}
}

// Is reports whether a state that was found is this one.
func (s State) Is(found State) bool {
	return found.Value == s.Value && (s.Value == "" || IsTTL(found.TTL, s.TTL)) &&
		slices.Equal(found.Queue, s.Queue) && (len(s.Queue) == 0 || IsTTL(found.QueueTTL, s.queueTTL())) &&
		maps.Equal(found.Record, s.Record) && (len(s.Record) == 0 || IsTTL(found.RecordTTL, s.WantRecordTTL())) &&
		s.HasShared(found.Shared)
}

// IsTTL reports whether a key with this remaining TTL had the TTL want at most ten seconds ago. A
// want of zero means no TTL. The ten seconds leave room for a busy machine.
func IsTTL(left, want time.Duration) bool {
	if want <= 0 {
		return left < 0
	}
	return left <= want+time.Millisecond && left > want-10*time.Second
}

// EachCommand is a hook that receives each command that is sent alone.
type EachCommand func(redis.Cmder)

// DialHook changes nothing.
func (EachCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook calls the function before a command that is sent alone.
func (c EachCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing.
func (EachCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// BeforeEach is a hook that calls a function before each command outside a pipeline.
type BeforeEach struct {
	OpenCircuit
	Before func(ctx context.Context)
}

// ProcessHook calls the function before a command that is sent alone.
func (c BeforeEach) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Before(ctx)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook changes nothing.
func (c BeforeEach) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// OpenCircuit is a hook that sends no command, as an open circuit breaker.
type OpenCircuit struct{}

// ErrOpen is the error of a command that OpenCircuit does not send.
var ErrOpen = errors.New("the circuit is open")

// DialHook changes nothing.
func (OpenCircuit) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook returns ErrOpen.
func (OpenCircuit) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return ErrOpen }
}

// ProcessPipelineHook returns ErrOpen.
func (OpenCircuit) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return ErrOpen }
}

// ServerError is an error of a server, as go-redis returns it.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// RedisError marks the error as one that a server sent.
func (ServerError) RedisError() {}

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
	Record    map[string]string // nil means that there is no record
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
	pipe := rdb.TxPipeline()
	pipe.Del(t.Context(), LockName, QueueName, FenceName, RecordName, SharedName)
	if s.Value != "" {
		pipe.Set(t.Context(), LockName, s.Value, s.TTL)
	}
	for _, token := range s.Queue {
		pipe.RPush(t.Context(), QueueName, token)
	}
	pipe.PExpire(t.Context(), QueueName, s.queueTTL())
	if s.Record != nil {
		pipe.HSet(t.Context(), RecordName, s.Record)
		pipe.PExpire(t.Context(), RecordName, s.WantRecordTTL())
	}
	s.PutShared(t.Context(), pipe, SharedName)
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
	value, _ := rdb.Get(t.Context(), LockName).Result()
	left := rdb.PTTL(t.Context(), LockName).Val()
	if value != s.Value || (value != "" && !IsTTL(left, s.TTL)) {
		t.Errorf("the lock is %q for %v, want %q for %v", value, left, s.Value, s.TTL)
	}
	queue := rdb.LRange(t.Context(), QueueName, 0, -1).Val()
	left = rdb.PTTL(t.Context(), QueueName).Val()
	if !slices.Equal(queue, s.Queue) || (len(queue) > 0 && !IsTTL(left, s.queueTTL())) {
		t.Errorf("the queue is %q for %v, want %q for %v", queue, left, s.Queue, s.queueTTL())
	}
	record := rdb.HGetAll(t.Context(), RecordName).Val()
	left = rdb.PTTL(t.Context(), RecordName).Val()
	if !maps.Equal(record, s.Record) || (len(record) > 0 && !IsTTL(left, s.WantRecordTTL())) {
		t.Errorf("the record is %q for %v, want %q for %v", record, left, s.Record, s.WantRecordTTL())
	}
	shared := SharedOf(rdb.ZRangeWithScores(t.Context(), SharedName, 0, -1).Val())
	left = rdb.PTTL(t.Context(), SharedName).Val()
	if !s.HasShared(shared) || (len(shared) > 0 && left < 0) {
		t.Errorf("the shared leases are %v for %v, want %v", shared, left, s.Shared)
	}
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

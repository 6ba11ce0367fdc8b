package storetest

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// State is what a test puts into the lock and its line beforehand, or finds in
// them afterwards.
type State struct {
	Value string        // "" is no key
	TTL   time.Duration // 0 is no end
	Queue []string
	// QueueTTL is lineLife where it is not given.
	QueueTTL time.Duration
	// Record is the hash, whose life is keep where it is not given.
	Record    map[string]string
	RecordTTL time.Duration
}

func (s State) lineLives() time.Duration { return cmp.Or(s.QueueTTL, QueueTTL) }

// RecordLife returns the TTL of the record.
func (s State) RecordLife() time.Duration { return cmp.Or(s.RecordTTL, Keep) }

// Put replaces the keys of the lock by the state.
func (s State) Put(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	pipe := rdb.TxPipeline()
	pipe.Del(t.Context(), LockName, QueueName, FenceName, RecordName)
	if s.Value != "" {
		pipe.Set(t.Context(), LockName, s.Value, s.TTL)
	}
	for _, token := range s.Queue {
		pipe.RPush(t.Context(), QueueName, token)
	}
	pipe.PExpire(t.Context(), QueueName, s.lineLives())
	if s.Record != nil {
		pipe.HSet(t.Context(), RecordName, s.Record)
		pipe.PExpire(t.Context(), RecordName, s.RecordLife())
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Check fails the test unless the keys of the lock have the state.
func (s State) Check(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	value, _ := rdb.Get(t.Context(), LockName).Result()
	left := rdb.PTTL(t.Context(), LockName).Val()
	if value != s.Value || (value != "" && !IsTTL(left, s.TTL)) {
		t.Errorf("the lock is %q for %v, want %q for %v", value, left, s.Value, s.TTL)
	}
	line := rdb.LRange(t.Context(), QueueName, 0, -1).Val()
	left = rdb.PTTL(t.Context(), QueueName).Val()
	if !slices.Equal(line, s.Queue) || (len(line) > 0 && !IsTTL(left, s.lineLives())) {
		t.Errorf("the line is %q for %v, want %q for %v", line, left, s.Queue, s.lineLives())
	}
	record := rdb.HGetAll(t.Context(), RecordName).Val()
	left = rdb.PTTL(t.Context(), RecordName).Val()
	if !maps.Equal(record, s.Record) || (len(record) > 0 && !IsTTL(left, s.RecordLife())) {
		t.Errorf("the record is %q for %v, want %q for %v", record, left, s.Record, s.RecordLife())
	}
}

// IsTTL reports whether a key that lives for left began with want a moment
// ago; a want of zero is no end.
func IsTTL(left, want time.Duration) bool {
	if want <= 0 {
		return left < 0
	}
	return left <= want+time.Millisecond && left > want-10*time.Second
}

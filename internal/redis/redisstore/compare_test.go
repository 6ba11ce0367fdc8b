package redisstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// compare compares the keys with these values.
func compare(t *testing.T, s *syncStore, seen ...store.Seen) ([]int, error) {
	t.Helper()
	return storetest.Await(t, func(done func([]int, error)) {
		s.Compare(seen, storetest.LongBound, func(changed []int, err error) { done(slices.Clone(changed), err) })
	})
}

func TestCompareFindsChangedKeys(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		if !s.CanCompare() {
			t.Fatal("cannot compare")
		}
		var seen []store.Seen
		for i := range 100 {
			key := fmt.Sprintf("k%d", i)
			rdb.Set(t.Context(), "p:"+key, storetest.Bob1, storetest.TTL)
			seen = append(seen, store.Seen{Key: key, Holder: storetest.Bob1})
		}
		for range 2 { // the first one loads the script
			if got, err := compare(t, s, seen...); err != nil || len(got) != 0 {
				t.Fatalf("nothing has changed: %v, %v", got, err)
			}
		}
		rdb.Del(t.Context(), "p:k3")
		rdb.Set(t.Context(), "p:k50", storetest.Me1, storetest.TTL)
		rdb.Del(t.Context(), "p:k99")
		rdb.RPush(t.Context(), "p:k99", storetest.Bob1) // another type
		if got, err := compare(t, s, seen...); err != nil || !slices.Equal(got, []int{3, 50, 99}) {
			t.Errorf("changed: %v, %v", got, err)
		}
		if got, err := compare(t, s, seen[3]); err != nil || !slices.Equal(got, []int{0}) {
			t.Errorf("one key: %v, %v", got, err)
		}
	}, redistest.OnCluster)
}

// In a cluster, a command has keys of one slot only.
func TestClusterCannotCompare(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{})
	t.Cleanup(func() { _ = rdb.Close() })
	if newStore(t, rdb).CanCompare() {
		t.Error("can compare")
	}
}

// A reply that names no keys of the request, or another reply, is a fault.
func TestCompareRejectsReplies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply     pipeline.Reply
		temporary bool
	}{
		"a refusal":                {pipeline.Reply{Err: replyError("CROSSSLOT Keys in request don't hash to the same slot")}, false},
		"no reply":                 {pipeline.Reply{Err: command.ErrNoReply}, true},
		"an index that is too big": {pipeline.Reply{Value: []any{int64(3)}}, false},
		"an index of 0":            {pipeline.Reply{Value: []any{int64(0)}}, false},
		"a text":                   {pipeline.Reply{Value: []any{"1"}}, false},
		"no list":                  {pipeline.Reply{Value: int64(1)}, false},
	} {
		_, err := storetest.Await(t, func(done func([]int, error)) {
			x := &compareOp{count: 2, done: done}
			go x.Settle(test.reply, false)
		})
		if err == nil || store.FaultOf(err).Temporary != test.temporary {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// replyError is an error that a server has sent.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks it for go-redis.
func (replyError) RedisError() {}

package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Without the right to publish, no waiter gets a hint, but the transitions are right.
func TestTransitionsWithoutRightToPublish(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"the command": "-publish", "the channels": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Reuse(t)
			rdb := server.Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, rdb)
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
			if got := enqueue(t, s); got.granted || got.holder != storetest.Bob1 {
				t.Errorf("enqueue: %+v", got)
			}
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}}.Check(t, rdb)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}.Put(t, rdb)
			if got := release(t, s); got.status != store.Freed {
				t.Errorf("release: %+v", got)
			}
			storetest.State{}.Check(t, rdb)
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
			if got := begin()(t, s); got.granted || got.holder != storetest.Bob1 {
				t.Errorf("begin: %+v", got)
			}
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}}.Check(t, rdb)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runningRecord(storetest.Me1, "1")}.Put(t, rdb)
			if got := finish(store.Commit)(t, s); got.status != store.Freed || got.stored != store.WasStored {
				t.Errorf("commit: %+v", got)
			}
			storetest.State{Record: doneRecord(storetest.Me1)}.Check(t, rdb)
		})
	}
}

package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// kept is the value of a key that a release leaves locked.
const kept = "reqlock-min-hold"

func TestReleaseKeepsTheKeyLocked(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		s := newStore(t, rdb)
		keep := storetest.Request(storetest.Me1)
		keep.Keep = storetest.Claim
		for name, test := range map[string]struct {
			before, after storetest.State
			want          store.ReleaseStatus
		}{
			"shortens the TTL": {
				storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.State{Value: kept, TTL: storetest.Claim}, store.Freed,
			},
			"raises the TTL": {
				storetest.State{Value: storetest.Me1, TTL: time.Second}, storetest.State{Value: kept, TTL: storetest.Claim}, store.Freed,
			},
			"leaves the queue": {
				before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
				after:  storetest.State{Value: kept, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
				want:   store.Freed,
			},
			"is not the holder": {
				storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}, storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}, store.NotHeld,
			},
			"the key is gone": {storetest.State{}, storetest.State{}, store.NotHeld},
		} {
			test.before.Put(t, rdb)
			if got, err := s.Release(t.Context(), keep); err != nil || got.Status != test.want {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			test.after.Check(t, rdb)
		}

		// No process owns the value: the key is a foreign client's.
		storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, rdb)
		if _, err := s.Release(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		if got := release(t, s); got.status != store.NotHeld {
			t.Errorf("a second release: %+v", got)
		}
		if got := enqueue(t, s); got.granted || !got.foreign || got.remaining > storetest.Claim+time.Millisecond {
			t.Errorf("a waiter: %+v", got)
		}
	})
}

func TestLostReplyToAKeepIsUnsure(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, rdb := behindProxy(t)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, rdb)
			keep := storetest.Request(storetest.Me1)
			keep.Keep = storetest.Claim
			if _, err := s.Release(t.Context(), storetest.Request(storetest.Me2)); err != nil { // loads no script of keep
				t.Fatal(err)
			}
			if err := rdb.ScriptLoad(t.Context(), s.scripts.Keep.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
			proxy.DropReply(redistest.Named("EVALSHA"), mode)
			if got, err := s.Release(t.Context(), keep); err != nil || got.Status != store.Unsure {
				t.Errorf("%+v, %v", got, err)
			}
			storetest.State{Value: kept, TTL: storetest.Claim}.Check(t, rdb)
		})
	}
}

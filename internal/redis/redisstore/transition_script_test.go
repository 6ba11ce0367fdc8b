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
		const left = kept + "! claim"
		for name, test := range map[string]struct {
			before, after string
			want          store.ReleaseStatus
		}{
			"shortens the TTL":  {"A1 ttl", left, store.Freed},
			"raises the TTL":    {"A1 1s", left, store.Freed},
			"leaves the queue":  {"A1 ttl | B1", left + " | B1", store.Freed},
			"is not the holder": {"B1 ttl", "B1 ttl", store.NotHeld},
			"the key is gone":   {"", "", store.NotHeld},
		} {
			stateOf(test.before).Put(t, rdb)
			if got, err := s.Release(t.Context(), keep); err != nil || got.Status != test.want {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			stateOf(test.after).Check(t, rdb)
		}

		// No process owns the value: the key is a foreign client's.
		storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, rdb)
		if _, err := s.Release(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		if got := release.run(t, s); got.status != store.NotHeld {
			t.Errorf("a second release: %+v", got)
		}
		if got := enqueue.run(t, s); got.granted || !got.foreign || got.remaining > storetest.Claim+time.Millisecond {
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

func TestScriptsAreLoadedAgainAfterScriptFlush(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		for range 2 {
			if got := enqueue.run(t, s); !got.granted {
				t.Errorf("enqueue: %+v", got)
			}
			if got := renew.run(t, s); !got.granted {
				t.Errorf("renew: %+v", got)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got := release.run(t, s); got.status != store.Freed {
				t.Errorf("release: %+v", got)
			}
			for _, name := range []string{"shared", "renew shared"} {
				if _, err := calls[name](t, s); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			// Each command has two scripts, of which the server knows none.
			if got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || !got.Shared {
				t.Errorf("exclusive: %+v, %v", got, err)
			}
			if got := release.run(t, s); got.status != store.NotHeld {
				t.Errorf("leave: %+v", got)
			}
			if got, err := s.Release(t.Context(), sharedRequest(0)); err != nil || got.Status != store.Freed {
				t.Errorf("release: %+v, %v", got, err)
			}
		}
	})
}

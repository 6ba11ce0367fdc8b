package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestScriptsAreLoadedAgainAfterScriptFlush(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStore(t, rdb)
		for range 2 {
			if got := enqueue(t, s); !got.granted {
				t.Errorf("enqueue: %+v", got)
			}
			if got := renew(t, s); !got.granted {
				t.Errorf("renew: %+v", got)
			}
			if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got := release(t, s); got.status != store.Freed {
				t.Errorf("release: %+v", got)
			}
			for _, name := range []string{"shared", "renew shared"} {
				if err := calls[name](t, s); err != nil {
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
			if got := release(t, s); got.status != store.NotHeld {
				t.Errorf("leave: %+v", got)
			}
			if got, err := s.Release(t.Context(), sharedRequest(0)); err != nil || got.Status != store.Freed {
				t.Errorf("release: %+v, %v", got, err)
			}
		}
	})
}

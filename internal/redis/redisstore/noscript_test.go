package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

//faults:row 22
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
		}
	})
}

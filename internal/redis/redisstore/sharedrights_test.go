package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A script that fails midway, because the user lacks a right, leaves no shared lease that
// never ends.
func TestSharedLeaseWithoutRightsEnds(t *testing.T) {
	t.Parallel()
	token := store.NewToken(storetest.Me, store.Unlimited, 1)
	for _, test := range []struct {
		name, missing string
		marked        bool  // the marker is there, although somebody has deleted its set
		queue         []any // the tokens in the queue
		fences        int
		granted       bool
	}{
		{"short form", "-pexpireat", false, nil, 0, true}, // the first lease of a phase needs no such right
		{"long form", "-pexpireat", false, nil, 1, false},
		{"set was deleted", "-pexpireat", true, nil, 0, false},
		{"from the queue", "-lrange", false, []any{token, storetest.Bob1}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", test.missing).Err(); err != nil {
				t.Fatal(err)
			}
			if test.marked {
				if err := rdb.Set(t.Context(), "p:k", "shared 0 - 0", time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if len(test.queue) > 0 {
				if err := rdb.RPush(t.Context(), "{p:k}:q", test.queue...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			r := storetest.Request(token)
			r.Limit, r.Fences = store.Unlimited, test.fences
			if got, err := newStore(t, rdb).Enqueue(t.Context(), r); got.Granted != test.granted || (err == nil) != test.granted {
				t.Errorf("enqueue: %+v, %v", got, err)
			}
			if ttl, err := rdb.PTTL(t.Context(), "{p:k}:s").Result(); err != nil || ttl <= 0 {
				t.Errorf("the leases have the TTL %v, %v", ttl, err)
			}
		})
	}
}

package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The two halves of a renewal while the lock and its set are on different nodes: neither
// creates or shortens anything, and neither renews a lease that has ended.
// tests/resharding moves the keys.
func TestHalvesOfRenewalApart(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	source := newStore(t, rdb).scripts.SharedRenewApart.Source.(string)
	const held, lost = "[1 -1 0 0]", "[0]"
	for _, test := range []struct {
		name, key, value string        // value of the lock, or the token in the set
		before, after    time.Duration // TTL of the lock, or the rest of the lease; 0 if there is none
		want             string
	}{
		{"lock", "K", storetest.Marker, time.Minute, 2 * storetest.TTL, "-1"},
		{"lock that lives longer", "K", storetest.Marker, time.Hour, time.Hour, "-1"},
		{"lock of an exclusive lease", "K", storetest.Bob1, time.Minute, time.Minute, lost},
		{"lock of a foreign client", "K", "shared", time.Minute, time.Minute, lost},
		{"lock is gone", "K", "", 0, 0, lost},
		{"lease", "S", storetest.Me1, time.Minute, storetest.TTL, held},
		{"lease that lives longer", "S", storetest.Me1, time.Hour, time.Hour, held},
		{"lease that has ended", "S", storetest.Me1, -time.Minute, -time.Minute, lost},
		{"lease of another token", "S", storetest.Bob1, time.Minute, time.Minute, lost},
		{"set is gone", "S", "", 0, 0, lost},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, name := t.Context(), storetest.LockName
			rdb.Del(ctx, storetest.LockName, storetest.SharedName)
			switch {
			case test.key == "S":
				name = storetest.SharedName
				if test.value != "" {
					rdb.ZAdd(ctx, name, redis.Z{Member: test.value, Score: float64(time.Now().Add(test.before).UnixMilli())})
					rdb.Expire(ctx, name, time.Hour)
				}
			case test.value != "":
				rdb.Set(ctx, name, test.value, test.before)
			}
			got, err := rdb.Eval(ctx, source, []string{name}, storetest.Me1, storetest.TTL.Milliseconds(), test.key).Result()
			if fmt.Sprint(got) != test.want || err != nil {
				t.Errorf("got %v, %v, want %s", got, err, test.want)
			}
			after := rdb.PTTL(ctx, name).Val()
			if test.key == "S" {
				after = time.Until(time.UnixMilli(int64(rdb.ZScore(ctx, name, test.value).Val())))
			}
			exists := rdb.Exists(ctx, name).Val() == 1
			if exists != (test.value != "") || exists && (after > test.after || after < test.after-time.Minute/2) {
				t.Errorf("exists %v, for %v, want %v", exists, after, test.after)
			}
		})
	}
}

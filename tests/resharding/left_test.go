package resharding

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// left returns the keys that each master has, with their lives.
func left(t *testing.T, cluster *redistest.Cluster) map[string]time.Duration {
	t.Helper()
	keys := make(map[string]time.Duration)
	for _, master := range cluster.Masters() {
		rdb := master.Client(t)
		iterator := rdb.Scan(t.Context(), 0, "", 1000).Iterator()
		for iterator.Next(t.Context()) {
			key := iterator.Val()
			if _, twice := keys[key]; twice {
				t.Errorf("%s is on two masters", key)
			}
			if life := rdb.PTTL(t.Context(), key).Val(); life != -2 { // it is still there
				keys[key] = life
			}
		}
		if err := iterator.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// checkLeft waits until no lock is held and nobody stands in line, long before
// their keys would fall by themselves, and fails the test if a key lives for ever.
func checkLeft(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	var stays []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", stays)
		}
	}()
	await(t, "no lock is held and nobody stands in line", func() bool {
		stays = stays[:0]
		for key, life := range left(t, cluster) {
			switch {
			case life < 0:
				t.Errorf("%s lives for ever", key)
			case !strings.HasSuffix(key, ":f") && !strings.HasSuffix(key, ":r"):
				stays = append(stays, fmt.Sprintf("%s for %v", key, life))
			}
		}
		return len(stays) == 0
	})
}

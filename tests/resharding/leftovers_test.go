package resharding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// noTTL is the TTL of a key that does not expire, and gone that of a missing key.
const noTTL, gone = -1, -2

// keysWith returns the keys with these hash tags on all masters, with their TTLs.
func keysWith(t *testing.T, cluster *redistest.Cluster, tags []string) map[string]time.Duration {
	t.Helper()
	keys := make(map[string]time.Duration)
	for _, master := range cluster.Masters() {
		rdb := master.Client(t)
		iterator := rdb.Scan(t.Context(), 0, "", 1000).Iterator()
		for iterator.Next(t.Context()) {
			key := iterator.Val()
			if !slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(key, tag) }) {
				continue
			}
			if _, isTwice := keys[key]; isTwice {
				t.Errorf("%s is on two masters", key)
			}
			if ttl := rdb.PTTL(t.Context(), key).Val(); ttl != gone {
				keys[key] = ttl
			}
		}
		if err := iterator.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rdb.Close()
	}
	return keys
}

// checkLeftovers waits until no key of locks and queues with these hash tags is left,
// long before such keys expire. It fails the test if a key has no TTL.
func checkLeftovers(t *testing.T, cluster *redistest.Cluster, tags ...string) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	suite.Eventually(t, "no lock is held and no queue is left", func() bool {
		left = left[:0]
		for key, ttl := range keysWith(t, cluster, tags) {
			switch {
			case ttl == noTTL:
				t.Errorf("%s has no TTL", key)
			case !strings.HasSuffix(key, ":f") && !strings.HasSuffix(key, ":r"):
				left = append(left, fmt.Sprintf("%s for %v", key, ttl))
			}
		}
		return len(left) == 0
	})
}

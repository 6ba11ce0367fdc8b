package failovertest

import (
	"fmt"
	"strings"
	"testing"
)

// wantTidy fails the test unless all locks and lines go, and nothing stays for good.
// All processes are closed.
func (d *deployment) wantTidy(t *testing.T) {
	t.Helper()
	var left []string
	await(t, "locks and lines are gone", func() bool {
		left = left[:0]
		for _, master := range d.masters() {
			admin := master.Client(t)
			keys, err := admin.Keys(t.Context(), "*").Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				ttl := admin.PTTL(t.Context(), key).Val()
				if ttl == -1 {
					t.Errorf("%s stays for good", key)
				}
				if ttl != -2 && !strings.HasSuffix(key, ":f") && !strings.HasSuffix(key, ":r") {
					left = append(left, fmt.Sprintf("%s for %v", key, ttl))
				}
			}
			_ = admin.Close()
		}
		return len(left) == 0
	})
	for _, key := range left {
		t.Errorf("left: %s", key)
	}
}

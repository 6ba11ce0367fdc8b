package failover

import (
	"context"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// checkLeftovers fails the test if locks or queues remain, or a key has no TTL. All
// processes of the scenarios are closed. If old data restored a queue, none of its waiters
// removes it: it disappears with the next release of the lock.
func (d *deployment) checkLeftovers(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "locks are gone", func() bool { return len(d.left(t, "")) == 0 })
	p := newProcess(t, d.client(t, 0, nil))
	for _, queue := range d.left(t, ":q") {
		key := strings.TrimPrefix(strings.Trim(strings.TrimSuffix(queue, ":q"), "{}"), prefix)
		if err := p.locks.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
			t.Errorf("%s: %v", queue, err)
		}
	}
	suite.Eventually(t, "queues are gone", func() bool { return len(d.left(t, ":q"))+len(d.left(t, "")) == 0 })
}

// left returns the keys of a kind that remain: locks ("") or keys with a suffix.
func (d *deployment) left(t *testing.T, kind string) (found []string) {
	t.Helper()
	for _, master := range d.masters() {
		admin := master.Client(t)
		keys, err := admin.Keys(t.Context(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if admin.PTTL(t.Context(), key).Val() == -1 {
				t.Errorf("%s has no TTL", key)
			}
			if kind == "" && !strings.HasPrefix(key, "{") || kind != "" && strings.HasSuffix(key, kind) {
				found = append(found, key)
			}
		}
		_ = admin.Close()
	}
	return found
}

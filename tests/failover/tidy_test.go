package failover

import (
	"context"
	"strings"
	"testing"
)

// wantTidy fails the test unless all locks and lines go, and nothing stays for good.
// All processes of the scenes are closed. A line that came back with old data has
// nobody left to leave it: it is gone when the next one has had the lock.
func (d *deployment) wantTidy(t *testing.T) {
	t.Helper()
	await(t, "locks are gone", func() bool { return len(d.left(t, "")) == 0 })
	p := newProcess(t, d.client(t, 0, nil))
	for _, line := range d.left(t, ":q") {
		key := strings.TrimPrefix(strings.Trim(strings.TrimSuffix(line, ":q"), "{}"), prefix)
		if err := p.locks.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	var left []string
	await(t, "lines are gone", func() bool {
		left = append(d.left(t, ":q"), d.left(t, "")...)
		return len(left) == 0
	})
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// left returns the keys of a kind that are left: locks ("") or companions of a lock.
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
				t.Errorf("%s stays for good", key)
			}
			if kind == "" && !strings.HasPrefix(key, "{") || kind != "" && strings.HasSuffix(key, kind) {
				found = append(found, key)
			}
		}
		_ = admin.Close()
	}
	return found
}

package engine

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// Once others have waited for the key, a shared request wants the holder, and a release does not say
// that no token waits: their brief commands would be refused.
func TestSharedQueueRemembersThatOthersWaited(t *testing.T) {
	t.Parallel()
	root := &queue{}
	shared := &queue{waitlist: &waitlist{limit: store.Unlimited, root: root}}
	alone := &queue{waitlist: &waitlist{root: root}}
	if shared.sharedWithOthers() || alone.sharedWithOthers() {
		t.Error("nobody has waited")
	}
	root.shared.othersWaited = time.Now()
	if !shared.sharedWithOthers() || alone.sharedWithOthers() {
		t.Error("others have waited for a shared queue only")
	}
}

package failover

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience is how long anything may take that is bound to happen. It is far
// beyond what it takes on a busy machine.
const patience = 30 * time.Second

// await polls until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Errorf("still not so: %s", what) // from any goroutine
			return
		}
	}
}

// isClosed reports whether the channel is closed.
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// awaitClosed returns when the channel is closed, or fails the test.
func awaitClosed(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Errorf("still not so: %s", what)
	}
}

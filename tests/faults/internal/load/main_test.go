package load

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// awaitTimeout bounds every wait for something that must happen.
const awaitTimeout = 60 * time.Second

// await calls wrong until it returns "". It fails the test with the last result.
func await(t *testing.T, what string, wrong func() string) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(awaitTimeout)
	for {
		found := wrong()
		if found == "" {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %v: %s: %s", awaitTimeout, what, found)
		}
	}
}

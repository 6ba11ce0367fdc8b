package failover

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// patience bounds the wait for what must happen. It is far longer than that takes on a
// busy machine.
const patience = 30 * time.Second

// parallelInFastTier runs a test of several deployments beside the others. The full tier has
// so many deployments that these tests must follow each other: on a busy machine too many
// servers at once would seem to fail.
func parallelInFastTier(t *testing.T) {
	t.Helper()
	if !suite.IsFull() {
		t.Parallel()
	}
}

package fault

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// injections bounds how many faults are injected at a time. The clients of each need CPU,
// and the tests measure how long their commands take.
var injections = make(chan struct{}, 6)

// awaitTurn returns when few enough other faults are injected. The test has its turn until
// its cleanups have run.
func awaitTurn(t *testing.T) {
	t.Helper()
	injections <- struct{}{}
	t.Cleanup(func() { <-injections })
}

package fault

import (
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// injections bounds how many faults are injected at a time. The clients of each need CPU,
// and the tests measure how long their commands take. The race detector makes them about
// ten times slower.
var injections = make(chan struct{}, injectionsAtATime())

func injectionsAtATime() int {
	if suite.Race {
		return 3
	}
	return 6
}

// quorums is held while a fault of a quorum is injected. Its clients have five servers each,
// and connect again and again: several quorums at a time run out of file descriptors.
var quorums sync.Mutex

// awaitTurn returns when few enough other faults are injected. The test has its turn until
// its cleanups have run.
func awaitTurn(t *testing.T) {
	t.Helper()
	injections <- struct{}{}
	t.Cleanup(func() { <-injections })
}

// awaitQuorumTurn is awaitTurn for a fault of a quorum.
func awaitQuorumTurn(t *testing.T) {
	t.Helper()
	quorums.Lock()
	t.Cleanup(quorums.Unlock)
	awaitTurn(t)
}

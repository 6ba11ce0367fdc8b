package failover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// soakEnv is how long the scenarios are repeated, such as "10m". Without it each scenario
// runs once.
const soakEnv = "REQLOCK_SOAK"

// A master is replaced, in each way, while callers hold its locks, wait for them and
// commit answers.
func TestAMasterIsReplaced(t *testing.T) {
	parallelInFastTier(t)
	for deployed, start := range deployments {
		t.Run(deployed, func(t *testing.T) {
			if deployed == "cluster" {
				suite.Full(t, "repeats the failures on Redis Cluster")
			}
			t.Parallel()
			d := start(t)
			end := time.Now().Add(suite.Duration(t, soakEnv, 0))
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				for name, f := range failures { // in any order
					if !f.runsOn(deployed) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						if !f.isFast {
							suite.Full(t, "repeats the test with each other way to replace a master")
						}
						s := &scenario{
							deployment: d, t: t, failure: f, ledger: newLedger(), history: history.NewRecorder(), failed: make(chan struct{}),
							promoted: make(chan struct{}),
							name:     fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), round),
						}
						masters := d.masters()
						s.master = masters[rand.IntN(len(masters))]
						s.run()
					})
				}
			}
			d.checkLeftovers(t)
		})
	}
}
